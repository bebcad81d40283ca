// The refusals that do not follow from the state of a coupon.
import { sendPatiently, sendPlain } from "../support/client.ts";
import { startService, type Running, type Teardown } from "../support/service.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { beginRequest } from "../support/sessions.ts";
import { credential, merchant, party, template } from "../support/tenants.ts";
import type { Recorder } from "./recorder.ts";

const redeemPath = "/v1/coupons/redeem";
const lockPath = "/v1/coupons/lock";

export async function recordRefusals(t: Teardown, service: Running, recorder: Recorder): Promise<void> {
  await recordTransport(service, recorder);
  await recordUnknown(service, recorder);
  await recordOrders(service, recorder);
  await recordRepeats(service, recorder);
  await recordFailures(t, service, recorder);
}

// What is refused before the operation is called.
async function recordTransport(service: Running, { keepError }: Recorder): Promise<void> {
  const by = service.as("ak_a");
  const body = { request_id: "r-1", coupon: "0000000000000000", merchant: "mch_a" };
  keepError(await sendPlain(service.url, "GET", "/v1/nothing"));
  keepError(await sendPlain(service.url, "GET", lockPath));
  keepError(await by.post(lockPath, "x".repeat(70_000)));
  keepError(await by.post(lockPath, body, { headers: { "content-type": "text/plain" } }));
  keepError(await sendPlain(service.url, "GET", "/v1/events"));
  keepError(await by.get("/v1/events", { timestamp: "1781985600" }));
  const nonce = "unonce-1-unonce-1";
  await by.get("/v1/events", { nonce });
  keepError(await by.get("/v1/events", { nonce }));
  keepError(await by.post(lockPath, { ...body, merchant: 1 }));
  keepError(await by.post(lockPath, body));
}

async function recordUnknown(service: Running, { keepError }: Recorder): Promise<void> {
  const [a, maker, pos] = [service.as("ak_a"), service.as("ak_maker"), service.as("ak_pos")];
  const stranger = await service.makeBatch(service.as("ak_a_stranger"), "tpl_a2s", 1);
  const ours = await service.makeBatch(maker, "tpl_b", 1);
  const body = { request_id: "r-2", coupon: stranger.codes[0]!, merchant: "mch_a" };
  keepError(await a.post(lockPath, body));
  keepError(await a.post(lockPath, { ...body, request_id: "r-3", merchant: "mch_none" }));
  const place = { request_id: "r-4", coupon: ours.codes[0]!, merchant: "mch_b", store: "S9" };
  keepError(await pos.post(lockPath, place));
  keepError(await pos.post(lockPath, { ...place, request_id: "r-5", store: "S1", terminal: "T9" }));
  const create = { request_id: "r-6", template: "tpl_none", total_count: 1 };
  keepError(await a.post("/v1/batches", create));
  const distributed = { ...create, request_id: "r-7", template: "tpl_fixed", distributor: "pty_none" };
  keepError(await a.post("/v1/batches", distributed));
  keepError(await a.get("/v1/batches/bat_none"));
  keepError(await a.post("/v1/redemptions/reverse", { request_id: "r-8", redemption: "red_none" }));
  keepError(await a.get("/v1/reconciliations/2026-03-31/detail"));
  keepError(await a.get("/v1/requests/r-none"));
}

// What the terms of a template refuse.
async function recordOrders(service: Running, { keepError }: Recorder): Promise<void> {
  const a = service.as("ak_a");
  const templates = [
    template("tpl_over", "pty_a", { valid_to: "2021-01-01T00:00:00Z" }),
    template("tpl_minimum", "pty_a", { min_order_amount: 50 }),
    template("tpl_items", "pty_a", { skus: ["A1"] }),
  ];
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates }] });
  keepError(await a.post("/v1/batches", { request_id: "r-10", template: "tpl_over", total_count: 1 }));
  const orders: [string, object][] = [
    ["tpl_scoped", {}],
    ["tpl_fixed", { currency: "USD" }],
    ["tpl_percent", {}],
    ["tpl_minimum", { order_amount: 20 }],
    ["tpl_items", { redemption_context: { items: [{ sku: "B2", amount: 20 }] } }],
  ];
  for (const [index, [name, order]] of orders.entries()) {
    const { codes } = await service.makeBatch(a, name, 1);
    keepError(await a.post(redeemPath, { request_id: `r-2${index}`, coupon: codes[0], merchant: "mch_a", ...order }));
  }
}

async function recordRepeats(service: Running, { keepError }: Recorder): Promise<void> {
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 1);
  keepError(await a.post("/v1/batches", { request_id: "batch-1", template: "tpl_fixed", total_count: 1 }));
  const body = { request_id: "r-30", coupon: codes[0]!, merchant: "mch_a" };
  const end = await beginRequest(service, "ak_a", "redeem", body);
  keepError(await sendPatiently(() => a.post(redeemPath, body), ["UNAVAILABLE"]));
  await end("rollback");
}

async function recordFailures(t: Teardown, service: Running, { keepError }: Recorder): Promise<void> {
  const on = { address: service.address, masterKeyText: service.masterKeyText };
  const limited = await startService(t, null, { on }, { requestsPerSecond: 0.0001, requestBurst: 1 });
  await limited.as("ak_a").get("/v1/events");
  keepError(await limited.as("ak_a").get("/v1/events"));
  const full = await startService(t, null, { on }, { openRequests: 0 });
  const body = { request_id: "r-40", batch: "bat_none" };
  keepError(await full.as("ak_a").post("/v1/batches/allocate", body));
  await service.owner.rows("alter function api.allocate_batch(core.call) rename to hidden");
  keepError(await service.as("ak_a").post("/v1/batches/allocate", body));
  await service.owner.rows("alter function api.hidden(core.call) rename to allocate_batch");

  const parties = ["pty_m1", "pty_m2"];
  const templateOf = (id: string) => id.replace("pty", "tpl");
  const many = {
    id: "ten_m",
    name: "M",
    variant: "A",
    parties: parties.map((id) => party(id, { time_zone: "UTC" })),
    merchants: [merchant("mch_m", "pty_m1")],
    templates: parties.map((id) => template(templateOf(id), id)),
    credentials: [credential("ak_m")],
  };
  await service.apply({ tenants: [many] });
  for (const id of parties) await service.makeBatch(service.as("ak_m"), templateOf(id), 1);
  await sequenceEvents(service.owner);
  keepError(await service.as("ak_m").get("/v1/reconciliations/2026-03-31/detail"));
}
