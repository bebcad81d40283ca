// The order of refusals that an operation decides: a call that deserves two of them gets the one that comes first in
// the table of docs/integrate.md.
import t, { type Test } from "tap";
import { batchKey, makeCode } from "../../../src/crypto/coupon-code.ts";
import { postOk } from "../../support/client.ts";
import { tenants, template } from "../../support/tenants.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { refusalsOfRedemption, variantsOfCallers, type Case, type Refusal } from "./refusals.ts";

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: structuredClone(tenants) });
});

const unknownCode = () => makeCode(service.keys, "1", batchKey(service.keys, "1", Buffer.alloc(32, 9)), 1);
let count = 0;

// A coupon and a call that deserve the given refusals.
async function prepare(variant: "A" | "B", refusals: Refusal[]): Promise<Case> {
  const { tenant, maker, till, merchant, other, otherTill } = variantsOfCallers[variant];
  const terms: Record<string, unknown> = {};
  const call: Record<string, unknown> = { order_amount: 200, request_id: newRequestId(), merchant };
  if (variant === "A") call["redemption_context"] = { items: [{ sku: "A1", amount: 200 }] };
  const steps = new Set(refusals.map(({ step }) => step));
  for (const { changes } of refusals) changes?.({ terms, call, variant, other });
  const id = `tpl_order${(count += 1)}`;
  const made = template(id, maker.party, { skus: undefined, ...terms });
  await service.apply({ tenants: [{ id: tenant, name: tenant, variant, templates: [made] }] });
  const isReleased = !steps.has("keep");
  const { codes, couponIds } = await service.makeBatch(service.as(maker.key), id, 1, { isReleased });
  call["coupon"] ??= codes[0];
  const patch = (name: string, ...more: unknown[]) =>
    service.admin.rows(`select admin.${name}($1, $2, ${more.map((_, index) => `$${index + 3}`).join(", ")})`, [
      tenant,
      couponIds[0],
      ...more,
    ]);
  const by = service.as(terms["merchants"] === undefined ? till : otherTill);
  const place = { coupon: codes[0], merchant: terms["merchants"] === undefined ? merchant : other };
  const lock_request_id = newRequestId();
  if (steps.has("lock") || steps.has("redeem")) {
    const items = { redemption_context: { items: [{ sku: "A1", amount: 200 }] } };
    const good = { order_amount: 200, ...(variant === "A" && items) };
    await postOk(by, "/v1/coupons/lock", { request_id: lock_request_id, ...place, ...good });
  }
  if (steps.has("expire")) await patch("extend_coupon", "2021-01-01", "why");
  if (steps.has("redeem"))
    await postOk(by, "/v1/coupons/confirm", { request_id: newRequestId(), lock_request_id, ...place });
  if (steps.has("void")) await patch("void_coupon", "why");
  if (steps.has("cancel")) {
    const body = { request_id: newRequestId(), coupon: codes[0], lock_request_id: call["request_id"] };
    await service.as(till).post("/v1/coupons/cancel", body);
  }
  return { till, call };
}

async function check(t: Test, variant: "A" | "B", operation: string, refusals: Refusal[]): Promise<void> {
  const { till, call } = await prepare(variant, refusals);
  const before = await readState(service.owner);
  const { json } = await service.as(till).post(`/v1/coupons/${operation}`, call);
  t.equal(json.code, refusals[0]!.code, refusals.map(({ code }) => code).join(" and "));
  t.strictSame(await readState(service.owner), before, "nothing changes");
}

for (const [variant, operation] of [
  ["A", "lock"],
  ["B", "redeem"],
] as const)
  t.test(`${operation}, Variant ${variant}: of two refusals the first in the table is given`, async (t) => {
    const own = refusalsOfRedemption.filter(({ only }) => only === undefined || only === variant);
    for (const [index, first] of own.entries()) {
      await check(t, variant, operation, [first]);
      for (const second of own.slice(index + 1))
        if (!first.excludes?.includes(second.code) && !(variant === "B" && first.excludesInB?.includes(second.code)))
          await check(t, variant, operation, [first, second]);
    }
  });

t.test("confirm, void and query: the merchant, the coupon, the merchant scope, then the state", async (t) => {
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_scoped", 2);
  const { codes: open } = await service.makeBatch(a, "tpl_fixed", 1);
  const send = async (operation: string, body: object) => {
    const { json } = await a.post(`/v1/coupons/${operation}`, {
      ...(operation !== "query" && { request_id: newRequestId() }),
      ...(operation === "confirm" && { lock_request_id: "none" }),
      ...body,
    });
    return json.details?.resource ?? json.code;
  };
  await postOk(a, "/v1/coupons/void", { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a2" });
  await postOk(a, "/v1/coupons/lock", { request_id: "to cancel", coupon: open[0], merchant: "mch_a2" });
  await postOk(a, "/v1/coupons/cancel", { request_id: "cancel", coupon: open[0], lock_request_id: "to cancel" });
  await postOk(a, "/v1/coupons/lock", { request_id: "scoped", coupon: codes[1], merchant: "mch_a2" });
  await postOk(a, "/v1/coupons/cancel", { request_id: "end", coupon: codes[1], lock_request_id: "scoped" });
  for (const operation of ["confirm", "void", "query"]) {
    t.equal(await send(operation, { merchant: "mch_none", coupon: unknownCode() }), "merchant", operation);
    t.equal(await send(operation, { merchant: "mch_none", coupon: codes[0] }), "merchant", operation);
    t.equal(await send(operation, { merchant: "mch_a", coupon: unknownCode() }), "coupon", operation);
    t.equal(await send(operation, { merchant: "mch_a", coupon: codes[0] }), "MERCHANT_NOT_IN_SCOPE", operation);
  }
  const confirm = (body: object) => send("confirm", { merchant: "mch_a", ...body });
  t.equal(await confirm({ coupon: codes[1], lock_request_id: "scoped" }), "MERCHANT_NOT_IN_SCOPE");
  t.equal(await confirm({ coupon: open[0], lock_request_id: "to cancel" }), "LOCK_NOT_FOUND", "of another merchant");
  t.equal(
    await send("confirm", { merchant: "mch_a2", coupon: open[0], lock_request_id: "to cancel" }),
    "LOCK_CANCELLED",
  );
});

t.test("create_batch: a reused key, the template, the distributor, then the template's end", async (t) => {
  const a = service.as("ak_a");
  const over = template("tpl_over", "pty_a", { valid_to: "2021-01-01T00:00:00Z" });
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [over] }] });
  const create = async (template: string, distributor: string, request_id = newRequestId()) => {
    const { json } = await a.post("/v1/batches", { request_id, template, distributor, total_count: 1 });
    return json.details?.resource ?? json.code;
  };
  const used = newRequestId();
  t.equal(await create("tpl_fixed", "pty_a", used), undefined);
  t.equal(await create("tpl_none", "pty_none"), "template");
  t.equal(await create("tpl_over", "pty_none"), "distributor");
  t.equal(await create("tpl_over", "pty_a"), "TEMPLATE_EXPIRED");
  // Without the record of the request, the batch itself tells that its key is used.
  await service.owner.rows("delete from core.request where request_id = $1", [used]);
  t.equal(await create("tpl_over", "pty_a", used), "IDEMPOTENCY_KEY_REUSED");
  t.equal(await create("tpl_none", "pty_a", used), "IDEMPOTENCY_KEY_REUSED");
  t.equal(await create("tpl_fixed", "pty_none", used), "IDEMPOTENCY_KEY_REUSED");
});
