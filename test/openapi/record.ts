// One run of the service in both variants that answers with every operation, every error code and every event.
import { exportCodes } from "../../src/commands/codes.ts";
import type { Examples } from "../../src/http/openapi/examples.ts";
import type { Variant } from "../../src/gate/gate.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { states, type State } from "../db/api/states.ts";
import { arrange, requestFor, setUpVariant, untilLocksExpire, type VariantSetup } from "../support/arrange.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { readEventBodies } from "../support/event-bodies.ts";
import { startService, type Existing, type Running, type Teardown } from "../support/service.ts";
import { document } from "../support/tenants.ts";
import { createRecorder, type Recorder } from "./recorder.ts";
import { recordRefusals } from "./record-refusals.ts";

type Options = { on?: Existing };

export async function recordExamples(t: Teardown, options: Options = {}): Promise<Examples> {
  const service = await startService(t, document, { mayBreakInvariants: true, ...options });
  const recorder = createRecorder();
  // Noon for the whole run: recordRefusals lets the sequencer open books, too.
  const offset = noonOffset();
  await setDistributorZones(service, offset);
  for (const variant of ["A", "B"] as const) {
    const setup = await setUpVariant(service, variant, {
      usual: { discount: { type: "percent", percent: 10, max_amount: 8 } },
    });
    await recordLife(service, setup, recorder);
    await recordStates(service, setup, recorder);
  }
  await recordRefusals(t, service, recorder);
  await recordStatements(t, service, offset, recorder);
  await recordWebhooks(service, recorder);
  return recorder.examples;
}

// One batch and its coupons.
async function recordLife(service: Running, setup: VariantSetup, { send }: Recorder): Promise<void> {
  const { variant, maker, till, merchant, templates } = setup;
  const create = { request_id: "batch-1", template: templates.usual, total_count: 4 };
  const created = await send(maker, [variant, "create_batch"], "/v1/batches", create);
  const batch = created.json.batch.external_id as string;
  const tooSoon = { request_id: "release-too-soon", batch };
  await send(maker, [variant, "allocate_batch"], "/v1/batches/allocate", tooSoon);
  await service.mint();
  await send(maker, [variant, "get_batch"], `/v1/batches/${batch}`);
  await send(maker, [variant, "allocate_batch"], "/v1/batches/allocate", { request_id: "release-1", batch });
  await send(maker, [variant, "allocate_batch"], "/v1/batches/allocate", { request_id: "release-again", batch });

  const coupons = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch, true))).flat();
  const [first, second, third] = coupons.map(({ code }) => code) as [string, string, string];
  const place = variant === "A" ? { store: "Main Street", terminal: "till 2" } : { store: "S1", terminal: "T1" };
  const order = { merchant, ...place, order_amount: 45.5, currency: "EUR", order_id: "4711" };
  await send(till, [variant, "lock"], "/v1/coupons/lock", { request_id: "lock-1", coupon: first, ...order });
  const lock = { lock_request_id: "lock-1", coupon: first };
  const confirm = { request_id: "confirm-1", ...lock, merchant };
  const { json } = await send(till, [variant, "confirm"], "/v1/coupons/confirm", confirm);
  const redeem = { request_id: "redeem-1", coupon: second, merchant, order_amount: 120 };
  await send(till, [variant, "redeem"], "/v1/coupons/redeem", redeem);
  await send(till, [variant, "query"], "/v1/coupons/query", { coupon: second, merchant });
  const reverse = { request_id: "reverse-1", redemption: json.redemption, reason: "goods returned" };
  await send(till, [variant, "reverse"], "/v1/redemptions/reverse", reverse);
  await till.post("/v1/coupons/lock", { request_id: "lock-2", coupon: third, merchant, order_amount: 10 });
  const cancel = { request_id: "cancel-1", lock_request_id: "lock-2", coupon: third };
  await send(till, [variant, "cancel"], "/v1/coupons/cancel", cancel);
  const voidIt = { request_id: "void-1", coupon: third, merchant, reason: "printed twice" };
  await send(till, [variant, "void"], "/v1/coupons/void", voidIt);
  await send(till, [variant, "get_request"], "/v1/requests/confirm-1");
}

// Every refusal that follows from the state of a coupon.
async function recordStates(service: Running, setup: VariantSetup, { send }: Recorder): Promise<void> {
  const arranged = await arrange(service, setup, Object.keys(states) as State[], 1);
  await untilLocksExpire(service);
  for (const [index, [coupon]] of [...arranged.values()].entries()) {
    for (const operation of ["lock", "confirm", "reverse", "void"] as const) {
      const [path, body] = requestFor(operation, coupon!, setup.merchant);
      const named = { ...body, request_id: `${operation}-of-coupon-${index + 1}` };
      await send(setup.till, [setup.variant, operation], path, named);
    }
  }
}

async function setDistributorZones(service: Running, offsetSeconds: number): Promise<void> {
  for (const party of ["pty_a", "pty_dist"]) await setZone(service, party, zoneOf(offsetSeconds));
}

async function recordStatements(
  t: Teardown,
  service: Running,
  offsetSeconds: number,
  { send, keepEvent }: Recorder,
): Promise<void> {
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  await setDistributorZones(service, offsetSeconds + daySeconds);
  await books.close();
  const distributors: [Variant, string][] = [
    ["A", "ak_a"],
    ["B", "ak_dist"],
  ];
  for (const [variant, key] of distributors) {
    const by = service.as(key);
    await send(by, [variant, "list_reconciliations"], "/v1/reconciliations?limit=1");
    await send(by, [variant, "pull_events"], "/v1/events?limit=2");
  }
  await books.worker.rows("select jobs.expire_coupons(1000)");
  await books.sequence();
  // Either statement may be ready first.
  for (const body of await readEventBodies(
    service.owner,
    "e.event_type <> 'reconciliation.ready' or e.party = 'pty_dist'",
  ))
    keepEvent(JSON.parse(body) as { event_type: string });
}

// A webhook of each variant with an attempt that failed. Its operator then switches it off.
async function recordWebhooks(service: Running, { send, keepError }: Recorder): Promise<void> {
  keepError(await service.as("ak_maker").get("/v1/webhook"));
  const webhook = { url: "https://shop.example/events", secret: newWebhookSecret() };
  for (const [variant, key, tenant, party] of [
    ["A", "ak_a", "ten_a", "pty_a"],
    ["B", "ak_dist", "ten_b", "pty_dist"],
  ] as const) {
    const by = service.as(key);
    const parties = [{ id: party, name: party, webhook }];
    await service.apply({ tenants: [{ id: tenant, name: tenant, variant, parties }] });
    const [newest] = await service.owner.rows<{ event: string }>(
      `select event from report.event where tenant = $1 and party = $2 and event_type = 'coupon.redeemed'
       order by event_seq desc limit 1`,
      [tenant, party],
    );
    const replay = { request_id: "replay-1", event_id: newest!.event };
    await send(by, [variant, "replay_events"], "/v1/webhook/replay", replay);
    await service.owner.rows("update core.webhook set holder = gen_random_uuid(), worker = 1, lease_until = now()");
    await service.owner.rows(
      `select jobs.record_deliveries(d.tenant_id, d.party_id, w.holder, jsonb_build_array(jsonb_build_object(
         'event_id', d.event_id, 'attempt', 1, 'http_status', 500, 'duration_ms', 12, 'is_taken', false)))
       from core.delivery d join core.webhook w using (tenant_id, party_id)
       where d.event_id = rules.parse_id('evt', $1)`,
      [newest!.event],
    );
    const test = { request_id: "test-1", event_type: "coupon.redeemed" };
    await send(by, [variant, "test_webhook"], "/v1/webhook/test", test);
    await send(by, [variant, "get_webhook"], "/v1/webhook");
    keepError(await by.post("/v1/webhook/replay", { request_id: "replay-2", event_id: "evt_none" }));
    await service.admin.rows("select admin.disable_webhook($1, $2, 'they moved')", [tenant, party]);
    keepError(await by.post("/v1/webhook/test", { ...test, request_id: "test-2" }));
  }
}
