// A worker as a program, behind a proxy that swallows what passes. No packet and no reset arrives.
import t from "tap";
import { find } from "../support/minting.ts";
import { startProxy } from "../support/proxy.ts";
import { startReceiver } from "../support/receiver.ts";
import { newRequestId } from "../support/service.ts";
import { subscribe, tenant } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { checkResumes, startWorker } from "../support/workers.ts";

t.test("minting, delivery and the feed go on when all connections of the worker go silent", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const { service } = fixture;
  const proxy = await startProxy(service.address);
  t.teardown(() => proxy.stop());
  await startWorker(t, service, { ...service.address, host: "127.0.0.1", port: proxy.port });
  const { coupons } = await service.makeBatch(service.as("ak_maker"), "tpl_s1", 1);
  await waitUntil("the first deliveries", () => receiver.received.length > 0);
  proxy.loseAll();
  await service.admin.rows("select admin.void_coupon($1, $2, 'to have an event')", [tenant, coupons[0]!.id]);
  const { json } = await service
    .as("ak_maker")
    .post("/v1/batches", { request_id: newRequestId(), template: "tpl_s1", total_count: 10 });
  const isMinted = async () => (await find(service, json.batch.external_id)).status === "COMPLETED";
  const hasVoiding = () => receiver.received.some(({ body }) => body.includes("coupon.voided"));
  await checkResumes(t, "the worker", async () => hasVoiding() && (await isMinted()));
});
