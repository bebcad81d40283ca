// One run of the service in both variants that answers with every operation, every error code and every event. It keeps
// the first answer of each as an example for the API description.
import { exportCodes } from "../../src/commands/codes.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import type { Variant } from "../../src/gate/gate.ts";
import type { Examples } from "../../src/http/openapi/examples.ts";
import { routes } from "../../src/http/routes/table.ts";
import { states, type State } from "../db/api/states.ts";
import { moveToNoon } from "../support/business-days.ts";
import { createCaller, untouched, type Caller, type Coupon } from "../support/caller.ts";
import { sendPatiently, sendPlain, type Client, type Reply } from "../support/client.ts";
import { readEventBodies } from "../support/event-bodies.ts";
import { scenario, type Options, type Scenario, type Teardown } from "../support/scenario.ts";
import type { Scene } from "../support/scene.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { beginRequest } from "../support/sessions.ts";
import { credential, merchant, party, template, tenants } from "../support/tenants.ts";

/** A run of the service. Callers that `watch` returns keep what they send and receive. */
type Run = {
  t: Teardown;
  service: Scenario;
  examples: Examples;
  watch(variant: Variant, client: Client): Caller;
  /** A watched caller of tenant ten_a. */
  a: Caller;
  keepError(reply: Reply): void;
};

const lockPath = "/v1/coupons/lock";

export async function recordExamples(t: Teardown, options: Pick<Options, "on"> = {}): Promise<Examples> {
  // The stranger is no sandbox.
  const file = { tenants: tenants.map((one) => ({ ...one, sandbox: one.id !== "ten_a2" })) };
  const service = await scenario(t, { file, http: true, mayBreakInvariants: true, ...options });
  const run = startRecording(t, service);
  await moveDistributors(service);
  for (const scene of [service.a, service.b]) {
    await addTemplates(service, scene);
    await recordLife(run, scene);
    await recordStates(run, scene);
  }
  await recordTransport(run);
  await recordUnknown(run);
  await recordOrders(run);
  await recordExports(run);
  await recordRepeats(run);
  await recordFailures(run);
  await recordStatements(run);
  await recordWebhooks(run);
  return run.examples;
}

function startRecording(t: Teardown, service: Scenario): Run {
  const examples: Examples = { operations: { A: {}, B: {} }, errors: {}, events: {} };

  function keepError({ json }: Reply): void {
    const name = json.code === "NOT_FOUND" ? `NOT_FOUND.${json.details.resource}` : json.code;
    examples.errors[name] ??= json;
  }

  function watch(variant: Variant, client: Client): Caller {
    const keep = (method: string, target: string, body: unknown, reply: Reply): Reply => {
      if (reply.status !== 200) keepError(reply);
      else examples.operations[variant][findOperation(method, target)] ??= { request: show(body), answer: reply.json };
      return reply;
    };
    const watched: Client = {
      ...client,
      get: async (target, options) => keep("GET", target, null, await client.get(target, options)),
      post: async (target, body, options) => keep("POST", target, body, await client.post(target, body, options)),
    };
    return createCaller(watched, variant === "A" ? "mch_a" : "mch_b");
  }

  return { t, service, examples, watch, a: watch("A", service.as("ak_a")), keepError };
}

function findOperation(method: string, target: string): string {
  const [path = ""] = target.split("?");
  const fits = (pattern: string) => new RegExp(`^${pattern.replace(/\{\w+\}/g, "[^/]+")}$`).test(path);
  return routes.find((route) => route.method === method && fits(route.path))!.operation;
}

/** An example shows no real code. */
function show(body: unknown): Record<string, unknown> | null {
  const request = body as Record<string, unknown> | null;
  return request !== null && "coupon" in request ? { ...request, coupon: "0123456789ABCDEF" } : request;
}

const templateOf = (kind: "usual" | "reissued" | "later", { variant }: Scene): string =>
  `tpl_${kind}${variant.toLowerCase()}`;

async function addTemplates(service: Scenario, scene: Scene): Promise<void> {
  const { variant, tenant, distributorParty: distributor } = scene;
  const add = (kind: Parameters<typeof templateOf>[0], terms: object) =>
    template(templateOf(kind, scene), variant === "A" ? "pty_a" : "pty_maker", { name: kind, distributor, ...terms });
  const templates = [
    add("usual", { discount: { type: "percent", percent: 10, max_amount: 8 } }),
    add("reissued", { after_reversal: "reissued" }),
    add("later", { valid_from: "2098-01-01T00:00:00Z" }),
  ];
  await service.apply({ tenants: [{ id: tenant, name: variant, variant, templates }] });
}

/** One batch and its coupons. */
async function recordLife({ service, watch }: Run, scene: Scene): Promise<void> {
  const { variant } = scene;
  const [maker, till] = [watch(variant, scene.maker), watch(variant, scene.till)];
  const { json } = await maker.createBatch(templateOf("usual", scene), 4, { request_id: "batch-1" });
  const batch = json.batch.external_id as string;
  await maker.allocateBatch(batch, { request_id: "release-too-soon" });
  await service.mint();
  await maker.get(`/v1/batches/${batch}`);
  await maker.allocateBatch(batch, { request_id: "release-1" });
  await maker.allocateBatch(batch, { request_id: "release-again" });
  await maker.get(`/v1/batches/${batch}/codes`);

  const codes = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch, true))).flat();
  const coupons = codes.map(({ code, coupon_id }) => ({ code, id: coupon_id, ...untouched }));
  const [first, second, third] = coupons as [Coupon, Coupon, Coupon];
  const place = variant === "A" ? { store: "Main Street", terminal: "till 2" } : { store: "S1", terminal: "T1" };
  const order = { ...place, order_amount: 45.5, currency: "EUR", order_id: "4711" };
  await till.lock(first, { request_id: "lock-1", ...order });
  await till.confirm(first, { request_id: "confirm-1" });
  await till.redeem(second, { request_id: "redeem-1", order_amount: 120 });
  await till.query(second);
  await till.reverse(first, { request_id: "reverse-1", reason: "goods returned" });
  await till.lock(third, { request_id: "lock-2", order_amount: 10 });
  await till.cancel(third, { request_id: "cancel-1" });
  await till.void(third, { request_id: "void-1", reason: "printed twice" });
  await till.get("/v1/requests/confirm-1");
  await maker.get("/v1/batches?limit=1");
  await till.get(`/v1/redemptions/${first.redemption}`);
  await service.steps.sequence();
  await till.get(`/v1/redemptions?merchant=${scene.merchant}&limit=2`);
  const reason = "codes leaked";
  await maker.suspendBatch(batch, { request_id: "suspend-1", reason });
  await maker.resumeBatch(batch, { request_id: "resume-1", reason: "false alarm" });
  await maker.recallBatch(batch, { request_id: "recall-1", reason });
}

/** Every refusal that follows from the state of a coupon. */
async function recordStates({ watch }: Run, scene: Scene): Promise<void> {
  const till = watch(scene.variant, scene.till);
  const all = Object.keys(states) as State[];
  // The request IDs of the examples count the states in this order.
  const rank = (state: State): number => ["lapsed", "reissu"].findIndex((word) => state.includes(word));
  for (const [index, state] of all.toSorted((one, other) => rank(one) - rank(other)).entries()) {
    const kind = state.includes("reissu") ? "reissued" : state === "not yet valid" ? "later" : "usual";
    const [coupon] = await scene.makeCoupons(1, state, templateOf(kind, scene));
    for (const operation of ["lock", "confirm", "reverse", "void"] as const) {
      const order = operation === "lock" ? { order_amount: 20 } : {};
      // A copy, so that what the lock changes is not confirmed.
      await till[operation]({ ...coupon! }, { request_id: `${operation}-of-coupon-${index + 1}`, ...order });
    }
  }
}

/** What is refused before the operation is called. */
async function recordTransport({ service, a, keepError }: Run): Promise<void> {
  const body = { request_id: "r-1", coupon: "0000000000000000", merchant: "mch_a" };
  keepError(await sendPlain(service.url, "GET", "/v1/nothing"));
  keepError(await sendPlain(service.url, "GET", lockPath));
  await a.post(lockPath, "x".repeat(70_000));
  await a.post(lockPath, body, { headers: { "content-type": "text/plain" } });
  keepError(await sendPlain(service.url, "GET", "/v1/events"));
  await a.get("/v1/events", { timestamp: "1781985600" });
  const nonce = "unonce-1-unonce-1";
  await service.as("ak_a").get("/v1/events", { nonce });
  await a.get("/v1/events", { nonce });
  await a.post(lockPath, { ...body, merchant: 1 });
  await a.post(lockPath, body);
}

async function recordUnknown({ service, a, watch }: Run): Promise<void> {
  const pos = watch("B", service.b.till);
  const { coupons } = await service.makeBatch(service.as("ak_a_stranger"), "tpl_a2s", 1);
  const [ours] = await service.b.makeCoupons(1);
  await a.lock(coupons[0]!, { request_id: "r-2" });
  await a.lock(coupons[0]!, { request_id: "r-3", merchant: "mch_none" });
  await pos.lock(ours!, { request_id: "r-4", store: "S9" });
  await pos.lock(ours!, { request_id: "r-5", store: "S1", terminal: "T9" });
  await a.createBatch("tpl_none", 1, { request_id: "r-6" });
  await a.createBatch("tpl_fixed", 1, { request_id: "r-7", distributor: "pty_none" });
  await a.get("/v1/batches/bat_none");
  await a.reverse(ours!, { request_id: "r-8", redemption: "red_none" });
  await a.get("/v1/reconciliations/2026-03-31/detail");
  await a.get("/v1/requests/r-none");
}

/** What the terms of a template refuse. */
async function recordOrders({ service, a }: Run): Promise<void> {
  const templates = [
    template("tpl_over", "pty_a", { valid_to: "2021-01-01T00:00:00Z" }),
    template("tpl_minimum", "pty_a", { min_order_amount: 50 }),
    template("tpl_items", "pty_a", { skus: ["A1"] }),
  ];
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates }] });
  await a.createBatch("tpl_over", 1, { request_id: "r-10" });
  const orders = {
    tpl_scoped: {},
    tpl_fixed: { currency: "USD" },
    tpl_percent: {},
    tpl_minimum: { order_amount: 20 },
    tpl_items: { redemption_context: { items: [{ sku: "B2", amount: 20 }] } },
  };
  for (const [index, [name, order]] of Object.entries(orders).entries()) {
    const [coupon] = await service.a.makeCoupons(1, "ISSUED", name);
    await a.redeem(coupon!, { request_id: `r-2${index}`, ...order });
  }
}

/** What the state of a batch, or a missing key, refuses to an export of its codes. */
async function recordExports({ service, watch }: Run): Promise<void> {
  const { maker, distributor, template } = service.b;
  const { id } = await service.makeBatch(maker, template, 1, { isReleased: false });
  await watch("B", distributor).get(`/v1/batches/${id}/codes`);
  await service.admin.rows("select admin.destroy_codes($1, 'printed')", [id]);
  await watch("B", maker).get(`/v1/batches/${id}/codes`);
}

async function recordRepeats({ service, a }: Run): Promise<void> {
  const [coupon] = await service.a.makeCoupons(1);
  await a.createBatch("tpl_fixed", 1, { request_id: "batch-1" });
  const body = { request_id: "r-30", coupon: coupon!.code, merchant: "mch_a" };
  const end = await beginRequest(service, "ak_a", "redeem", body);
  await sendPatiently(() => a.redeem(coupon!, body), ["UNAVAILABLE"]);
  await end("rollback");
}

async function recordFailures({ t, service, a, watch }: Run): Promise<void> {
  const on = { address: service.address, masterKeyText: service.masterKeyText };
  const limited = await scenario(t, {
    http: true,
    file: null,
    on,
    limits: { requestsPerSecond: 0.0001, requestBurst: 1 },
  });
  await limited.as("ak_a").get("/v1/events");
  await watch("A", limited.as("ak_a")).get("/v1/events");
  const full = await scenario(t, { http: true, file: null, on, limits: { openRequests: 0 } });
  await watch("A", full.as("ak_a")).allocateBatch("bat_none", { request_id: "r-40" });
  await service.owner.rows("alter function api.allocate_batch(core.call) rename to hidden");
  await a.allocateBatch("bat_none", { request_id: "r-40" });
  await service.owner.rows("alter function api.hidden(core.call) rename to allocate_batch");

  const parties = ["pty_m1", "pty_m2"];
  const templateFor = (id: string) => id.replace("pty", "tpl");
  const many = {
    id: "ten_m",
    name: "M",
    variant: "A",
    parties: parties.map((id) => party(id, { time_zone: "UTC" })),
    merchants: [merchant("mch_m", "pty_m1")],
    templates: parties.map((id) => template(templateFor(id), id)),
    credentials: [credential("ak_m")],
  };
  await service.apply({ tenants: [many] });
  for (const id of parties) await service.makeBatch(service.as("ak_m"), templateFor(id), 1);
  await sequenceEvents(service.owner);
  await watch("A", service.as("ak_m")).get("/v1/reconciliations/2026-03-31/detail");
}

async function moveDistributors(service: Scenario, days = 0): Promise<void> {
  for (const id of ["pty_a", "pty_dist"]) await moveToNoon(service, id, days);
}

async function recordStatements({ service, examples, a, watch }: Run): Promise<void> {
  await service.steps.sequence();
  await moveDistributors(service, 1);
  await service.steps.close();
  for (const by of [a, watch("B", service.as("ak_dist"))]) {
    await by.get("/v1/reconciliations?limit=1");
    await by.get("/v1/events?limit=2");
  }
  await service.worker.rows("select jobs.expire_coupons(1000)");
  await service.steps.sequence();
  for (const by of [a, watch("B", service.as("ak_dist")), watch("A", service.as("ak_a_stranger"))])
    await by.post("/v1/sandbox/close_day", { request_id: "close-1" });
  // Either statement may be ready first.
  const condition = "e.event_type <> 'reconciliation.ready' or e.party = 'pty_dist'";
  for (const body of await readEventBodies(service.owner, condition)) {
    const event = JSON.parse(body) as { event_type: string };
    examples.events[event.event_type] ??= event;
  }
}

/** A webhook of each variant with an attempt that failed. Its operator then switches it off. */
async function recordWebhooks({ service, watch }: Run): Promise<void> {
  await watch("B", service.as("ak_maker")).get("/v1/webhook");
  const webhook = { url: "https://shop.example/events", secret: newWebhookSecret() };
  for (const [variant, key, tenant, party] of [
    ["A", "ak_a", "ten_a", "pty_a"],
    ["B", "ak_dist", "ten_b", "pty_dist"],
  ] as const) {
    const by = watch(variant, service.as(key));
    const parties = [{ id: party, name: party, webhook }];
    await service.apply({ tenants: [{ id: tenant, name: tenant, variant, parties }] });
    const [newest] = await service.owner.rows<{ event: string }>(
      `select event from report.event where tenant = $1 and party = $2 and event_type = 'coupon.redeemed'
       order by event_seq desc limit 1`,
      [tenant, party],
    );
    const replay = { request_id: "replay-1", event_id: newest!.event };
    await by.post("/v1/webhook/replay", replay);
    await service.owner.rows("update core.webhook set holder = gen_random_uuid(), worker = 1, lease_until = now()");
    // As if this lease had begun after the replay.
    await service.owner.rows("update core.delivery set counts_for = null");
    await service.owner.rows(
      `select jobs.record_deliveries(d.tenant_id, d.party_id, w.holder, jsonb_build_array(jsonb_build_object(
         'event_id', d.event_id, 'attempt', 1, 'http_status', 500, 'duration_ms', 12, 'is_taken', false)))
       from core.delivery d join core.webhook w using (tenant_id, party_id)
       where d.event_id = rules.parse_id('evt', $1)`,
      [newest!.event],
    );
    await by.post("/v1/portal", { request_id: "portal-1" });
    const test = { request_id: "test-1", event_type: "coupon.redeemed" };
    await by.post("/v1/webhook/test", test);
    await by.get("/v1/webhook");
    await by.post("/v1/webhook/replay", { request_id: "replay-2", event_id: "evt_none" });
    await service.admin.rows("select admin.disable_webhook($1, $2, 'they moved')", [tenant, party]);
    await by.post("/v1/webhook/test", { ...test, request_id: "test-2" });
  }
}
