// Applying a changed file: which changes are allowed, which are refused, and what stays. First applies are in
// apply.test.ts.
import { randomBytes } from "node:crypto";
import t from "tap";
import { apply, ApplyError } from "../../src/commands/apply.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { open, webhookPurpose } from "../../src/crypto/seal.ts";
import { fits } from "../support/fits.ts";
import { tenants } from "../support/tenants.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { readState } from "../support/state.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, tenantB] });
});

const made = async () => ({ code: (await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1)).codes[0]! });
const call = (path: string, body: object) =>
  service.as("ak_a").post(path, { request_id: newRequestId(), merchant: "mch_a", ...body });

// Applies a file that must be refused. Returns the paths of its issues.
async function issuesOf(file: unknown): Promise<string[]> {
  const before = await readState(service.owner);
  const error = await service.apply(file).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApplyError)) throw new Error("not refused", { cause: error });
  t.strictSame(await readState(service.owner), before, "a refused file changes nothing");
  return error.issues.map(({ path }) => path);
}
const changedA = (change: (tenant: any) => void) => {
  const tenant = structuredClone(tenantA);
  change(tenant);
  return { tenants: [tenant] };
};

t.test("apply refuses changes to the terms of minted coupons and to the owner of a credential", async (t) => {
  await made();
  const money = (change: object) => changedA((tenant) => Object.assign(tenant.templates[0], change));
  const at = "tenants.0.templates.0";
  t.strictSame(await issuesOf(money({ discount: { type: "fixed", amount: 6 } })), [`${at}.discount`]);
  t.strictSame(
    await issuesOf(money({ currency: "USD", min_order_amount: 1, skus: ["x"], after_reversal: "reissued" })),
    ["currency", "min_order_amount", "skus", "after_reversal"].map((field) => `${at}.${field}`),
  );
  t.strictSame(
    await issuesOf(
      changedA((tenant) => {
        tenant.variant = "B";
        tenant.credentials = [];
      }),
    ),
    ["tenants.0.variant"],
  );
  t.strictSame(await issuesOf(changedA((tenant) => (tenant.amount_unit = "minor"))), ["tenants.0.amount_unit"]);
  const moved = structuredClone(tenantB);
  moved.credentials[0].party = "pty_shop";
  t.strictSame(await issuesOf({ tenants: [moved] }), ["tenants.0.credentials.0.party"]);
  t.strictSame(
    await issuesOf({
      tenants: [
        { ...tenantB, name: "stays" },
        changedA((tenant) => (tenant.merchants[0].party = "pty_none")).tenants[0],
      ],
    }),
    ["tenants.1.merchants.0.party"],
    "and applies no other tenant of the file",
  );
});

// The stores of mch_a with their terminals.
async function listPlaces() {
  const rows = await service.owner.rows(
    `select s.external_id as store, t.external_id as terminal
     from core.store s
     join core.merchant m using (tenant_id, merchant_id)
     left join core.terminal t using (tenant_id, store_id)
     where m.external_id = 'mch_a'
     order by 1, 2`,
  );
  return rows.map((row) => ({ ...row }));
}

t.test("a given list replaces the whole list; anything else the file omits stays", async (t) => {
  const file = changedA((tenant) => {
    tenant.name = "another name";
    Object.assign(tenant.templates[0], {
      name: "new",
      merchants: ["mch_a2"],
      lock_ttl_seconds: 60,
      valid_to: "2090-01-01T00:00:00Z",
    });
    tenant.merchants[0].delegates = ["pty_a"];
    tenant.merchants[0].stores = [{ external_id: "S1", terminals: ["T1", "T2"] }, { external_id: "S2" }];
  });
  const { code } = await made();
  await service.apply(file);
  fits(
    t,
    (
      await service.owner.rows(
        "select action, tenant_id is not null as has_tenant, details from core.audit order by audit_id desc limit 1",
      )
    )[0],
    { action: "apply", has_tenant: true, details: { changed: /[1-9]/ } },
  );
  fits(
    t,
    (await call("/v1/coupons/redeem", { coupon: code })).json,
    { code: "MERCHANT_NOT_IN_SCOPE" },
    "the new scope applies at once",
  );
  fits(
    t,
    (await call("/v1/coupons/query", { coupon: code, merchant: "mch_a2" })).json.coupon,
    { valid_to: "2099-01-01T00:00:00.000Z" },
    "a coupon keeps its validity",
  );
  t.strictSame(await listPlaces(), [
    { store: "S1", terminal: "T1" },
    { store: "S1", terminal: "T2" },
    { store: "S2", terminal: null },
  ]);

  const audits = async () => (await service.owner.rows("select from core.audit")).length;
  const before = [await readState(service.owner), await audits()];
  fits(t, await service.apply(file), { changed: 0 }, "a second time changes nothing");
  t.strictSame([await readState(service.owner), await audits()], before);

  file.tenants[0].merchants[0].stores = [{ external_id: "S1", terminals: ["T2"] }];
  file.tenants[0].merchants[0].delegates = [];
  await service.apply(file);
  t.strictSame(await listPlaces(), [{ store: "S1", terminal: "T2" }]);
  t.equal(
    (
      await service.owner.rows(
        `select
         from core.merchant_delegate d
         join core.merchant m using (tenant_id, merchant_id)
         where m.external_id = 'mch_a'`,
      )
    ).length,
    0,
  );
  delete file.tenants[0].merchants[0].stores;
  fits(t, await service.apply(file), { changed: 0 }, "an omitted list stays unchanged");
  const renamed = await service.apply({ tenants: [{ id: "ten_a", name: "another name", variant: "A" }] });
  fits(t, renamed, { changed: 0 }, "anything the file does not name stays unchanged");
  await service.apply({ tenants: [tenantA] });
});

t.test("a lock is confirmed although its template no longer covers the merchant", async (t) => {
  const { code } = await made();
  const locked = (await call("/v1/coupons/lock", { request_id: "in scope", coupon: code })).json;
  await service.apply(changedA((tenant) => (tenant.templates[0].merchants = ["mch_a2"])));
  const confirm = async (merchant: string) =>
    (await call("/v1/coupons/confirm", { coupon: code, lock_request_id: "in scope", merchant })).json;
  fits(t, await confirm("mch_a2"), { code: "LOCK_NOT_FOUND" }, "it is the lock of another merchant");
  t.strictSame(await confirm("mch_a"), { ok: true, redemption: locked.redemption, status: "REDEEMED" });
  await service.apply({ tenants: [tenantA] });
});

t.test("only the party and the delegates in the list may act for the merchant", async (t) => {
  const acts = async (caller: string) => {
    const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
    return (await service.as(caller).post("/v1/coupons/query", { coupon: codes[0], merchant: "mch_b" })).status === 200;
  };
  const replaced = structuredClone(tenantB);
  replaced.merchants[0].delegates = ["pty_other"];
  t.strictSame([await acts("ak_pos"), await acts("ak_other")], [true, false]);
  await service.apply({ tenants: [replaced] });
  t.strictSame([await acts("ak_pos"), await acts("ak_other"), await acts("ak_shop")], [false, true, true]);
  Object.assign(replaced.merchants[0], { party: "pty_other", delegates: [] });
  await service.apply({ tenants: [replaced] });
  t.strictSame(
    [await acts("ak_other"), await acts("ak_shop")],
    [true, false],
    "the merchant has moved to another party",
  );
  await service.apply({ tenants: [tenantB] });
});

t.test("a new webhook secret is a rotation: the previous one is kept", async (t) => {
  const [previous, next] = [2, 3].map((byte) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`) as [
    string,
    string,
  ];
  const withHook = (hook: object) =>
    changedA((tenant) => (tenant.parties[0].webhook = { url: "https://example.com/hook", ...hook }));
  await service.apply(withHook({ secret: previous }));
  fits(t, await service.apply(withHook({ secret: next })), { changed: 1, generated_secrets: { webhooks: [] } });
  const read = async () => {
    const [row] = await service.owner.rows<Record<string, Uint8Array>>(
      `select w.sealed_secret, s.sealed_secret as replaced
       from core.webhook w
       left join core.replaced_secret s using (tenant_id, party_id)`,
    );
    return Object.values(row!).map((sealed) => open(service.keys, webhookPurpose("ten_a", "pty_a"), sealed));
  };
  t.strictSame(await read(), [next, previous]);
  fits(t, await service.apply(withHook({ secret: next })), { changed: 0 });
  fits(t, await service.apply(withHook({})), { changed: 0 }, "an omitted secret stays unchanged");
  fits(t, await service.apply(withHook({ url: "https://example.com/other" })), { changed: 1 });
  t.strictSame(await read(), [next, previous]);
});

t.test("after a rotation of the master key, a file with the same secrets changes nothing", async (t) => {
  const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
  const withSecrets = (byte: number) =>
    changedA((tenant) => {
      tenant.parties[0].webhook = { url: "https://example.com/hook", secret: secretOf(byte) };
      tenant.credentials = [{ ...tenant.credentials[0], secret: `${byte}`.repeat(32) }];
    });
  await service.apply(withSecrets(4));
  const [former, next] = [`1:${service.masterKeyText}`, `2:${randomBytes(32).toString("base64")}`];
  const keys = parseMasterKeys(`${next},${former}`);
  fits(t, await apply(service.admin, keys, withSecrets(4)), { changed: 0 });
  fits(t, await apply(service.admin, keys, withSecrets(5)), { changed: 2 });
  fits(t, await apply(service.admin, parseMasterKeys(next), withSecrets(5)), { changed: 0 }, "with the new key alone");
  fits(t, await service.apply(withSecrets(4)), { changed: 2 });
});
