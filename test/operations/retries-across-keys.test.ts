// A rotation of the master key, as documented: a retry is recognised by every program, before, during and after it.
import { randomBytes } from "node:crypto";
import t from "tap";
import { defaultLimits } from "../../src/common/config.ts";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { fits } from "../support/fits.ts";
import { secretOf } from "../support/tenants.ts";
import { newRequestId, startService } from "../support/service.ts";
import { createClient } from "../support/signing-client.ts";
import { createStubLog } from "../support/stub.ts";

t.test("an equal retry is a replay under each list of a rotation, and another body is refused", async (t) => {
  const service = await startService(t);
  const { logger: log } = createStubLog();
  const startWith = async (list: string) => {
    const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
    const keys = parseMasterKeys(list);
    const { url, stop } = await serve({ address: service.address, keys, limits: defaultLimits, listening, log });
    t.teardown(stop);
    return createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
  };
  const [former, next] = [`1:${service.masterKeyText}`, `2:${randomBytes(32).toString("base64")}`];
  const old = await startWith(former);
  const known = await startWith(`${former},${next}`);
  const current = await startWith(`${next},${former}`);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 4);
  const values = { merchant: "mch_a", order_amount: 40 };

  for (const [index, [first, others]] of [
    [old, [known, current]] as const,
    [known, [old, current]] as const,
    [current, [known]] as const,
  ].entries()) {
    const body = { request_id: newRequestId(), coupon: codes[index], ...values };
    const answer = await first.post("/v1/coupons/redeem", body);
    t.equal(answer.status, 200, `case ${index}`);
    for (const other of others) {
      const replay = await other.post("/v1/coupons/redeem", body);
      t.strictSame([replay.status, replay.json], [200, answer.json], `case ${index}`);
      t.equal(replay.headers["idempotent-replayed"], "true");
      fits(t, await other.post("/v1/coupons/redeem", { ...body, order_amount: 41 }), {
        status: 422,
        json: { code: "IDEMPOTENCY_KEY_REUSED" },
      });
    }
  }

  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 3 };
  const made = await old.post("/v1/batches", body);
  await service.owner.rows("delete from core.request where request_id = $1", [body.request_id]);
  t.strictSame((await current.post("/v1/batches", body)).json.batch, made.json.batch, "its record was pruned");

  const last = { ...body, request_id: newRequestId() };
  t.equal((await current.post("/v1/batches", last)).status, 200);
  const [row] = await service.owner.rows<{ hash: string }>(
    "select encode(body_hash, 'hex') as hash from core.request where request_id = $1",
    [last.request_id],
  );
  t.equal(row!.hash, hashBody(parseMasterKeys(next), last), "what is new does not need the former key");
});
