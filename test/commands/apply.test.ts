// npm run apply: everything that a file declares exists afterwards, or nothing of it.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { apply, type Applied } from "../../src/commands/apply.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { open, webhookPurpose } from "../../src/crypto/seal.ts";
import { acme, issuesOf } from "../support/applying.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import { createClient } from "../support/client.ts";
import { inGroups, rightUrls, wrongUrls } from "../support/spellings.ts";
import { readState } from "../support/state.ts";
import { merchant, party, template, tenants } from "../support/tenants.ts";

const [usualA, , tenantB] = structuredClone(tenants) as [any, any, any];
const tenantA = { ...usualA, parties: [...usualA.parties, party("pty_new")] };
const document = { tenants: [tenantA, tenantB] };
const service = await scenario(t, { http: true, file: document });

// The file with a changed tenant of Variant A.
function changedA(change: (tenant: any) => void) {
  const tenant = structuredClone(tenantA);
  change(tenant);
  return { tenants: [tenant] };
}

// Each file must be refused for these reasons.
async function checkRefusals(t: Test, rows: [file: unknown, issues: string[]][]): Promise<void> {
  const before = await readState(service.owner);
  for (const [file, issues] of rows) t.strictSame(await issuesOf(service, file), issues);
  t.strictSame(await readState(service.owner), before, "a refused file changes nothing");
}

const makeCode = async () => (await service.a.makeCoupons(1))[0]!.code;
const call = (path: string, body: object) =>
  service.as("ak_a").post(path, { request_id: newRequestId(), merchant: "mch_a", ...body });

t.test("a generated secret is shown once and signs; applying the file again changes nothing", async (t) => {
  const credentials = [{ access_key: "ak_new", party: "pty_maker" }];
  const more = { ...acme({ merchants: [], credentials }).tenants[0], id: "ten_new" };
  const first = (await service.apply({ tenants: [...acme().tenants, more] })) as Applied;
  const declared = { parties: ["pty_maker", "pty_shop"], templates: ["tpl_1"] };
  // The tenant, 2 parties and a webhook, a merchant with its delegate, store and terminal, a template, a credential.
  t.strictSame(first.tenants, [
    { ...declared, id: "ten_acme", merchants: ["mch_1"], credentials: ["ak_acme"], changed: 10 },
    { ...declared, id: "ten_new", merchants: [], credentials: ["ak_new"], changed: 6 },
  ]);
  t.equal(first.changed, 16);
  const generated = first.generated_secrets;
  const [credential] = generated.credentials;
  fits(t, generated.credentials, [
    { access_key: "ak_acme", secret: /^[\w-]{43}$/ },
    { access_key: "ak_new", secret: /^[\w-]{43}$/ },
  ]);
  const rows = await service.owner.rows<{ tenant: string; sealed: Uint8Array }>(
    `select t.external_id as tenant, w.sealed_secret as sealed
     from core.webhook w join core.tenant t using (tenant_id) order by 1`,
  );
  const stored = rows.map(({ tenant, sealed }) => {
    const secret = open(service.keys, webhookPurpose(tenant, "pty_maker"), sealed);
    return { tenant, party: "pty_maker", secret };
  });
  t.strictSame(generated.webhooks, stored, "the secrets of webhooks, each of its own tenant");
  fits(t, stored, [{ secret: /^whsec_/ }, { secret: /^whsec_/ }]);
  const caller = createClient({ url: service.url, accessKey: "ak_acme", secret: credential!.secret! });
  const created = await caller.post("/v1/batches", { request_id: newRequestId(), template: "tpl_1", total_count: 1 });
  t.equal(created.status, 200, created.text);

  const before = await readState(service.owner);
  const nothing = { changed: 0, generated_secrets: { credentials: [], webhooks: [] } };
  fits(t, await service.apply(acme()), nothing);
  fits(t, await service.apply(document), { changed: 0 }, "also with given secrets");
  t.strictSame(await readState(service.owner), before);
});

t.test("a secret given later replaces the generated one, and the database holds it sealed only", async (t) => {
  const secret = "a secret of more than thirty-two characters";
  const file = acme({ credentials: [{ access_key: "ak_acme", party: "pty_maker", secret }] });
  fits(t, await service.apply(file), { changed: 1 });
  const answer = await createClient({ url: service.url, accessKey: "ak_acme", secret }).get("/v1/batches/bat_none");
  fits(t, answer.json, { code: "NOT_FOUND" });
  const [row] = await service.owner.rows<{ text: string }>(
    "select string_agg(encode(sealed_secret || secret_hash, 'escape'), ' ') as text from core.credential",
  );
  t.notMatch(row!.text, "thirty-two");
});

t.test("the audit log has each changed object with its fields old and new, and no secret or token", async (t) => {
  const secret = (letter: string) => `whsec_${Buffer.alloc(32, letter).toString("base64")}`;
  const file = (more: object, hook: object, discount: object, key: string) => ({
    ...acme({
      id: "ten_audit",
      merchants: [{ id: "mch_1", name: "Shop", party: "pty_shop", delegates: ["pty_maker"], ...more }],
      parties: [party("pty_maker", { webhook: { url: "https://u.example/a?token=t1", ...hook } }), party("pty_shop")],
      templates: [template("tpl_1", "pty_maker", { discount })],
      credentials: [{ access_key: "ak_audit", party: "pty_maker", secret: key.repeat(32) }],
    }),
  });
  const readAudit = async () => {
    const rows = await service.owner.rows<{ target: string; reason: string; details: object }>(
      "select target, reason, details from report.audit where tenant = 'ten_audit' order by audit_id",
    );
    return rows.map(({ target, reason, details }) => [target, reason, details]);
  };
  const five = { type: "fixed", amount: 5 };
  await service.apply(file({ stores: [{ external_id: "S1", terminals: ["T1"] }] }, { secret: secret("a") }, five, "x"));
  const made = await readAudit();
  t.strictSame(
    made.map(([target]) => target),
    ["ak_audit", "mch_1", "pty_maker", "pty_shop", "ten_audit", "tpl_1"],
  );
  fits(t, made[0], ["ak_audit", null, { party: { old: null, new: "pty_maker" } }]);
  fits(t, (made[2] as unknown[])[2], { webhook_url: { old: null, new: "https://u.example" } });
  const stores = [{ external_id: "S1", terminals: ["T2", "T1"] }, { external_id: "S2" }];
  const percent = { type: "percent", percent: 12.5, max_amount: 3 };
  const hook = { url: "https://u.example/a?token=t2", secret: secret("b") };
  await service.apply(file({ stores, delegates: [] }, hook, percent, "y"), { reason: "new till" });
  t.strictSame((await readAudit()).slice(6), [
    ["ak_audit", "new till", { secret: "replaced" }],
    [
      "mch_1",
      "new till",
      {
        delegates: { old: ["pty_maker"], new: null },
        "store S1": { old: ["T1"], new: ["T1", "T2"] },
        "store S2": { old: null, new: [] },
      },
    ],
    [
      "pty_maker",
      "new till",
      { webhook_url: { old: "https://u.example", new: "https://u.example" }, webhook_secret: "replaced" },
    ],
    [
      "tpl_1",
      "new till",
      {
        discount_type: { old: "fixed", new: "percent" },
        discount_amount: { old: 5, new: null },
        discount_percent: { old: null, new: 12.5 },
        max_discount_amount: { old: null, new: 3 },
      },
    ],
  ]);
  await service.apply(file({ stores, delegates: [] }, hook, percent, "y"), { reason: "nothing new" });
  t.equal((await readAudit()).length, 10, "nothing changed, so nothing is written");
  await t.rejects(service.apply(file({}, hook, five, "y"), { reason: " " }), { message: "a patch needs a reason" });
  await t.rejects(service.apply(file({}, hook, five, "y"), { reason: "z".repeat(1_001) }), {
    message: /1,000 characters/,
  });
});

// A tenant with a merchant of many stores, and a template for some merchants.
const shops = (change: (tenant: any) => void = () => {}) => {
  const id = "ten_shops";
  const merchants = ["mch_1", "mch_2", "mch_3"].map((each): any => merchant(each, "pty_shop"));
  merchants[0].delegates = ["pty_maker"];
  merchants[0].stores = Array.from({ length: 12 }, (_, n) => ({ external_id: `S ${n + 10}`, terminals: ["T1", "T2"] }));
  const templates = [template("tpl_1", "pty_maker", { merchants: ["mch_1", "mch_2"] })];
  const file = acme({ id, merchants, templates, credentials: [{ access_key: "ak_shops", party: "pty_maker" }] });
  change(file.tenants[0]);
  return file;
};

t.test("a dry run prints what a run prints but for secrets, and writes nothing", async (t) => {
  const secrets = /"secret":("[^"]*"|null)/g;
  const shown = (applied: unknown) =>
    JSON.stringify({ ...(applied as Applied), is_dry_run: null })
      .replace(secrets, "")
      .replaceAll(/[0-9a-f]{64}/g, "");
  const files = [
    shops(),
    shops((tenant) => {
      tenant.merchants[0].stores[0].terminals = ["T2", "T3"];
      tenant.merchants[0].delegates = [];
      tenant.parties[0].webhook.secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
      tenant.credentials = [{ access_key: "ak_shops", party: "pty_maker", secret: "7".repeat(32) }];
    }),
  ];
  for (const file of files) {
    const before = await readState(service.owner);
    const tried = (await service.apply(file, { isDryRun: true })) as Applied;
    t.strictSame(await readState(service.owner), before);
    t.equal(tried.is_dry_run, true);
    for (const { secret } of tried.generated_secrets.credentials) t.equal(secret, null, "no run would show it again");
    const applied = (await service.apply(file)) as Applied;
    t.equal(shown(tried), shown(applied));
    t.ok(applied.changed > 0);
    const audits = await service.owner.rows(
      `select tenant, target, details as fields from report.audit
       where action = 'apply' order by audit_id desc limit $1`,
      [applied.changes.length],
    );
    t.strictSame(applied.changes, [...audits].reverse(), "the changes are those of the audit log");
  }
  t.strictSame(
    await issuesOf(
      service,
      shops((tenant) => (tenant.merchants[0].party = "pty_none")),
      { isDryRun: true },
    ),
    ["tenants.0.merchants.0.party: no such party in this tenant"],
  );
});

t.test("what a file removes is named, and more than ten of a kind only if that is allowed", async (t) => {
  await service.apply(shops());
  const removalsOf = async (file: unknown, options: object = { isDryRun: true }) =>
    ((await service.apply(file, options)) as Applied).removals;
  const tenant = "ten_shops";
  const fewer = shops(({ merchants, templates }) => {
    merchants[0].stores.splice(0, 1);
    merchants[0].stores[0].terminals = ["T2"];
    merchants[0].delegates = [];
    templates[0].merchants = ["mch_2"];
  });
  t.strictSame(await removalsOf(fewer), [
    { kind: "delegate", tenant, merchant: "mch_1", name: "pty_maker" },
    { kind: "merchant", tenant, template: "tpl_1", name: "mch_1" },
    { kind: "store", tenant, merchant: "mch_1", name: "S 10" },
    { kind: "terminal", tenant, merchant: "mch_1", store: "S 10", name: "T1" },
    { kind: "terminal", tenant, merchant: "mch_1", store: "S 10", name: "T2" },
    { kind: "terminal", tenant, merchant: "mch_1", store: "S 11", name: "T1" },
  ]);
  // Missing merchants mean all, so it gains one. Then it loses those that it does not name, but not a new one.
  const all = shops(({ templates }) => delete templates[0].merchants);
  t.strictSame(await removalsOf(all, {}), []);
  const fourth = shops(({ merchants, templates }) => {
    merchants.push(merchant("mch_4", "pty_shop"));
    templates[0].merchants = ["mch_1"];
  });
  const lost = ["mch_2", "mch_3"].map((name) => ({ kind: "merchant", tenant, template: "tpl_1", name }));
  t.strictSame(await removalsOf(fourth), lost);
  await service.apply(shops());

  const keep = (stores: number, terminals: number) =>
    shops(({ merchants }) => {
      merchants[0].stores.splice(stores);
      for (const store of merchants[0].stores.slice(terminals)) store.terminals = [];
    });
  t.equal((await removalsOf(keep(12, 7))).length, 10, "ten are allowed");
  const more = "more. Check the file; --allow-removals allows it.";
  const names = (...ends: string[]) => ends.map((end) => `ten_shops mch_1 S 1${end}`).join(", ");
  await checkRefusals(t, [
    [
      keep(1, 1),
      [
        `stores: 11 would be removed: ${names(..."12345")} and 6 ${more}`,
        `terminals: 22 would be removed: ${names("1 T1", "1 T2", "2 T1", "2 T2", "3 T1")} and 17 ${more}`,
      ],
    ],
  ]);
  fits(t, await removalsOf(keep(1, 1), { allowsRemovals: true }), { length: 33 });
  await service.apply(shops());
});

t.test("stores_added adds stores and terminals, and leaves the others", async (t) => {
  await service.apply(shops());
  const adds = (stores_added: object[]) =>
    acme({
      id: "ten_shops",
      credentials: [],
      templates: [],
      parties: [],
      merchants: [{ ...merchant("mch_1", "pty_shop"), stores_added }],
    });
  const file = adds([
    { external_id: "S 10", terminals: ["T3"] },
    { external_id: "S 99", terminals: ["T1"] },
  ]);
  fits(t, await service.apply(file), {
    changed: 3,
    removals: [],
    changes: [
      {
        target: "mch_1",
        fields: {
          "store S 10": { old: ["T1", "T2"], new: ["T1", "T2", "T3"] },
          "store S 99": { old: null, new: ["T1"] },
        },
      },
    ],
  });
  fits(t, await service.apply(file), { changed: 0 });
  fits(t, await service.apply(shops()), { removals: [{ name: "S 99" }, { name: "T3" }, { name: "T1" }] });
});

t.test("a revoked credential that is applied again is named, and stays revoked", async (t) => {
  const credentials = ["ak_gone", "ak_here"].map((access_key) => ({ access_key, party: "pty_maker" }));
  fits(t, await service.apply(acme({ credentials })), { revoked_credentials: [] });
  await service.admin.rows("select admin.revoke_credential('ak_gone', 'leaked')");
  fits(t, await service.apply(acme({ credentials })), { changed: 0, revoked_credentials: ["ak_gone"] });
});

t.test("a time zone can change; an omitted one stays unchanged, and is UTC for a new party", async (t) => {
  const parties = (more: object) => acme({ parties: [party("pty_maker", more), party("pty_zone")] });
  await service.apply(parties({ time_zone: "Europe/Berlin" }));
  fits(t, await service.apply(parties({ time_zone: "Asia/Tokyo" })), { changed: 1 });
  fits(t, await service.apply(parties({})), { changed: 0 });
  const zones = await service.owner.rows(
    `select p.external_id as party, p.time_zone
     from core.party p
     join core.tenant t using (tenant_id)
     where t.external_id = 'ten_acme'
     order by 1`,
  );
  fits(t, zones, [
    { party: "pty_maker", time_zone: "Asia/Tokyo" },
    { party: "pty_shop", time_zone: "UTC" },
    { party: "pty_zone", time_zone: "UTC" },
  ]);
});

t.test("each problem of a file is reported with its path, and nothing is stored", async (t) => {
  const usual = template("tpl_2", "pty_maker");
  const tooFine = "must have at most 2 decimals, as EUR has";
  const withTemplate = (more: object) => ({ templates: [{ ...usual, ...more }] });
  const unknown = {
    merchants: [
      { id: "mch_1", name: "m", party: "pty_shop", delegates: ["pty_maker", "pty_ghost", "pty_pos"] },
      { id: "mch_2", name: "m", party: "pty_ghost" },
    ],
    ...withTemplate({
      maker: "pty_none",
      distributor: "pty_dist",
      currency: "QQQ",
      min_order_amount: 0.001,
      merchants: ["mch_1", "mch_none", "mch_b"],
    }),
    credentials: [{ access_key: "ak_acme", party: "pty_none" }],
  };
  const rows: [Record<string, unknown>, string[]][] = [
    [
      { colour: "red", ...withTemplate({ valid_to: usual.valid_from }) },
      ["templates.0.valid_to: must be later than valid_from", "colour: unknown field"],
    ],
    [
      withTemplate({ discount: { type: "fixed", amount: 5.001 }, min_order_amount: 0.001 }),
      [`templates.0.discount.amount: ${tooFine}`, `templates.0.min_order_amount: ${tooFine}`],
    ],
    [
      withTemplate({ discount: { type: "percent", percent: 5, max_amount: 0.001 }, min_order_amount: 1 }),
      [`templates.0.discount.max_amount: ${tooFine}`],
    ],
    [
      {
        id: "ten_minor",
        amount_unit: "minor",
        credentials: [],
        ...withTemplate({ discount: { type: "fixed", amount: 5.5 } }),
      },
      ["templates.0.discount.amount: must be an integer: amounts are in minor units of EUR"],
    ],
    [
      { credentials: [{ access_key: "ak_maker", party: "pty_maker" }] },
      ["credentials.0.access_key: belongs to another tenant"],
    ],
    // Some of them exist, in another tenant.
    [
      unknown,
      [
        "merchants.0.delegates.1: no such party in this tenant",
        "merchants.0.delegates.2: no such party in this tenant",
        "merchants.1.party: no such party in this tenant",
        "templates.0.maker: no such party in this tenant",
        "templates.0.distributor: no such party in this tenant",
        "templates.0.currency: is not an ISO 4217 currency",
        "templates.0.merchants.1: no such merchant in this tenant",
        "templates.0.merchants.2: no such merchant in this tenant",
        "credentials.0.party: no such party in this tenant",
      ],
    ],
  ];
  await checkRefusals(
    t,
    rows.map(([more, issues]) => [acme(more), issues.map((issue) => `tenants.0.${issue}`)]),
  );
});

t.test("a coupon code in any text of a file is refused, but not in a secret", async (t) => {
  const code = await makeCode();
  const [usual] = tenantA.templates;
  const refused = "must not contain a coupon code";
  await checkRefusals(t, [
    [changedA((tenant) => (tenant.name = `Acme ${code}`)), [`tenants.0.name: ${refused}`]],
    [
      changedA((tenant) => (tenant.parties = [party(`pty_${code.toLowerCase()}`, { name: "Maker" })])),
      [`tenants.0.parties.0.id: ${refused}`],
    ],
    [
      changedA((tenant) => (tenant.templates = [{ ...usual, skus: ["A1", inGroups(code)] }])),
      [`tenants.0.templates.0.skus.1: ${refused}`],
    ],
  ]);
  const credentials = [{ access_key: "ak_more", secret: `0123456789abcdef-${code}` }];
  fits(t, await service.apply(changedA((tenant) => Object.assign(tenant, { credentials }))), { changed: 1 });

  // 45 places in each of them could begin a code: 9,000 in all, more than a request may have.
  const skus = Array.from({ length: 200 }, (_, index) => `${"1".repeat(60)}u${index}`);
  const templates = [{ ...usual, id: "tpl_skus", skus }];
  fits(
    t,
    await service.apply(changedA((tenant) => Object.assign(tenant, { templates }))),
    { changed: 1 },
    "many texts",
  );
});

t.test("variant, unit of amounts and the party of a credential are fixed", async (t) => {
  const moved = structuredClone(tenantB);
  moved.credentials[0].party = "pty_shop";
  const wrongMerchant = changedA((tenant) => (tenant.merchants[0].party = "pty_none")).tenants[0];
  await checkRefusals(t, [
    [
      changedA((tenant) => Object.assign(tenant, { variant: "B", credentials: [] })),
      ["tenants.0.variant: cannot change: the tenant exists in variant A"],
    ],
    [
      changedA((tenant) => (tenant.amount_unit = "minor")),
      ["tenants.0.amount_unit: cannot change: the tenant exists with major"],
    ],
    [{ tenants: [moved] }, ["tenants.0.credentials.0.party: cannot change: create a new credential"]],
    // And no other tenant of the file is applied.
    [
      { tenants: [{ ...tenantB, name: "stays" }, wrongMerchant] },
      ["tenants.1.merchants.0.party: no such party in this tenant"],
    ],
  ]);
});

// A change in the file, and what report.template shows then.
type Change = [declared: object, shown: Record<string, unknown>];

const discount = { type: "percent", percent: 7.5, max_amount: 3 };
const terms: Change[] = [
  [{ maker: "pty_new" }, { maker: "pty_new" }],
  [{ currency: "USD" }, { currency: "USD" }],
  [{ discount: { type: "fixed", amount: 6 } }, { discount_amount: 6 }],
  [
    { discount: { type: "percent", percent: 5 } },
    { discount_type: "percent", discount_amount: null, discount_percent: 5 },
  ],
  [{ discount: { ...discount, percent: 5 } }, { max_discount_amount: 3 }],
  [{ discount }, { discount_percent: 7.5 }],
  [{ min_order_amount: 20 }, { min_order_amount: 20 }],
  [{ skus: ["A", "B"] }, { skus: ["A", "B"] }],
  [{ after_reversal: "reissued" }, { after_reversal: "reissued" }],
];
const changedTerms = [
  { maker: "pty_a" },
  { currency: "EUR" },
  { discount: { type: "fixed", amount: 6 } },
  { discount: { ...discount, percent: 8 } },
  { discount: { ...discount, max_amount: 4 } },
  { min_order_amount: 21 },
  { skus: ["A"] },
  { after_reversal: "consumed" },
];
const otherFields: Change[] = [
  [{ name: "of 2090" }, { name: "of 2090" }],
  [{ distributor: "pty_new" }, { distributor: "pty_new" }],
  [{ valid_from: "2021-01-01T00:00:00Z" }, { valid_from: "2021-01-01T00:00:00+00:00" }],
  [{ valid_to: "2090-01-01T00:00:00Z" }, { valid_to: "2090-01-01T00:00:00+00:00" }],
  [{ lock_ttl_seconds: 60 }, { lock_ttl_seconds: 60 }],
];

t.test("each term of a template can change until it has a batch, and every other field after that too", async (t) => {
  const declared = template("tpl_new", "pty_a", { distributor: "pty_a" });
  const fileWith = (change: object) => changedA((tenant) => (tenant.templates = [{ ...declared, ...change }]));
  const readTemplate = async () => {
    const [row] = await service.owner.rows<{ row: Record<string, unknown> }>(
      "select to_jsonb(x) as row from report.template x where template = 'tpl_new'",
    );
    return row!.row;
  };
  const checkChanges = async (changes: Change[]) => {
    for (const [change, shown] of changes) {
      const before = await readTemplate();
      fits(t, await service.apply(fileWith(change)), { changed: 1 }, JSON.stringify(change));
      // The change stays for the next one.
      Object.assign(declared, change);
      t.strictSame(await readTemplate(), { ...before, ...shown });
    }
    fits(t, await service.apply(fileWith({})), { changed: 0 });
  };
  await service.apply(fileWith({}));
  await checkChanges(terms);
  await service.makeBatch(service.as("ak_a"), "tpl_new", 1, { isReleased: false });
  fits(t, await service.apply(fileWith({ skus: ["B", "A"] })), { changed: 0 }, "SKUs have no order");
  await checkRefusals(
    t,
    changedTerms.map((change) => {
      const issue = `tenants.0.templates.0.${Object.keys(change)[0]}: cannot change: the template has a batch`;
      return [fileWith(change), [issue]];
    }),
  );
  await checkChanges(otherFields);
});

t.test("a given list replaces the whole list; anything else the file omits stays", async (t) => {
  const code = await makeCode();
  const file = changedA((tenant) => {
    tenant.name = "another name";
    const dates = { lock_ttl_seconds: 60, valid_to: "2090-01-01T00:00:00Z" };
    Object.assign(tenant.templates[0], { name: "new", merchants: ["mch_a2"], ...dates });
    tenant.merchants[0].delegates = ["pty_a"];
    tenant.merchants[0].stores = [
      { external_id: "S1", terminals: ["T1", "T2"] },
      { external_id: "S2" },
      { external_id: "S3", terminals: ["T1", "T2"] },
    ];
  });
  // The party of mch_a, its stores with their terminals, and its delegates.
  const readMerchant = async () => {
    const [row] = await service.owner.rows<{ party: string; places: string[]; delegates: string[] }>(
      `select (select external_id from core.party p
               where (p.tenant_id, p.party_id) = (m.tenant_id, m.party_id)) as party,
              array(select concat_ws(' ', s.external_id, t.external_id)
                    from core.store s left join core.terminal t using (tenant_id, store_id)
                    where (s.tenant_id, s.merchant_id) = (m.tenant_id, m.merchant_id) order by 1) as places,
              array(select p.external_id
                    from core.merchant_delegate d join core.party p using (tenant_id, party_id)
                    where (d.tenant_id, d.merchant_id) = (m.tenant_id, m.merchant_id)) as delegates
       from core.merchant m where m.external_id = 'mch_a'`,
    );
    return { ...row };
  };
  await service.apply(file);
  const audits = await service.owner.rows(
    "select action, tenant_id is not null as has_tenant, details from core.audit order by audit_id desc limit 1",
  );
  fits(t, audits, [{ action: "apply", has_tenant: true, details: { merchants: { old: "all", new: ["mch_a2"] } } }]);
  const redeemed = await call("/v1/coupons/redeem", { coupon: code });
  fits(t, redeemed.json, { code: "MERCHANT_NOT_IN_SCOPE" }, "the new scope applies at once");
  const seen = await call("/v1/coupons/query", { coupon: code, merchant: "mch_a2" });
  fits(t, seen.json.coupon, { valid_to: "2099-01-01T00:00:00.000Z" }, "a coupon keeps its validity");
  const declared = { party: "pty_a", places: ["S1 T1", "S1 T2", "S2", "S3 T1", "S3 T2"], delegates: ["pty_a"] };
  t.strictSame(await readMerchant(), declared);

  const before = await readState(service.owner);
  fits(t, await service.apply(file), { changed: 0 }, "a second time changes nothing");
  t.strictSame(await readState(service.owner), before, "not even the audit");

  const [merchant] = file.tenants[0].merchants;
  merchant.stores[0].terminals = ["T2"];
  fits(t, await service.apply(file), { changed: 1 }, "a terminal goes, although another store has one of that name");
  t.strictSame(await readMerchant(), { ...declared, places: ["S1 T2", "S2", "S3 T1", "S3 T2"] });
  Object.assign(merchant, { party: "pty_new", stores: [{ external_id: "S1", terminals: ["T2"] }], delegates: [] });
  await service.apply(file);
  t.strictSame(await readMerchant(), { party: "pty_new", places: ["S1 T2"], delegates: [] });
  delete merchant.stores;
  fits(t, await service.apply(file), { changed: 0 }, "an omitted list stays unchanged");
  const renamed = await service.apply({ tenants: [{ id: "ten_a", name: "another name", variant: "A" }] });
  fits(t, renamed, { changed: 0 }, "anything the file does not name stays unchanged");
  await service.apply(document);
});

t.test("a lock is confirmed although its template no longer covers the merchant", async (t) => {
  const coupon = await makeCode();
  const locked = (await call("/v1/coupons/lock", { request_id: "in scope", coupon })).json;
  await service.apply(changedA((tenant) => (tenant.templates[0].merchants = ["mch_a2"])));
  const confirm = async (merchant: string) =>
    (await call("/v1/coupons/confirm", { coupon, lock_request_id: "in scope", merchant })).json;
  fits(t, await confirm("mch_a2"), { code: "LOCK_NOT_FOUND" }, "it is the lock of another merchant");
  t.strictSame(await confirm("mch_a"), { ok: true, redemption: locked.redemption, status: "REDEEMED" });
  await service.apply(document);
});

const webhookSecret = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
const withHook = (hook: object) =>
  changedA((tenant) => (tenant.parties[0].webhook = { url: "https://example.com/hook", ...hook }));

t.test("a new webhook secret is a rotation: the previous one is kept", async (t) => {
  const [previous, next] = [webhookSecret(2), webhookSecret(3)];
  await service.apply(withHook({ secret: previous }));
  fits(t, await service.apply(withHook({ secret: next })), { changed: 1, generated_secrets: { webhooks: [] } });
  const read = async () => {
    const [row] = await service.owner.rows<Record<string, Uint8Array>>(
      `select w.sealed_secret, s.sealed_secret as replaced
       from core.webhook w
       join core.party p using (tenant_id, party_id)
       left join core.replaced_secret s using (tenant_id, party_id)
       where p.external_id = 'pty_a'`,
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
  const withSecrets = (byte: number) => {
    const file = withHook({ secret: webhookSecret(byte) });
    file.tenants[0].credentials = [{ ...tenantA.credentials[0], secret: `${byte}`.repeat(32) }];
    return file;
  };
  await service.apply(withSecrets(4));
  const [former, next] = [`1:${service.masterKeyText}`, `2:${randomBytes(32).toString("base64")}`];
  const keys = parseMasterKeys(`${next},${former}`);
  fits(t, await apply(service.admin, keys, withSecrets(4)), { changed: 0 });
  fits(t, await apply(service.admin, keys, withSecrets(5)), { changed: 2 });
  fits(t, await apply(service.admin, parseMasterKeys(next), withSecrets(5)), { changed: 0 }, "with the new key alone");
  fits(t, await service.apply(withSecrets(4)), { changed: 2 });
});

t.test("the URL of a webhook is stored as its parser writes it, which the table accepts", async (t) => {
  const withUrl = (url: string) => changedA(({ parties }) => (parties[0].webhook = { url }));
  const read = () =>
    service.owner.rows<{ webhook_url: string }>(
      `select w.url as webhook_url from core.webhook w join core.party p using (tenant_id, party_id)
       where p.external_id = $1`,
      [tenantA.parties[0].id],
    );
  for (const url of rightUrls) {
    await service.apply(withUrl(url));
    fits(t, await read(), [{ webhook_url: new URL(url).href }], url);
    fits(t, await service.apply(withUrl(new URL(url).href)), { changed: 0 }, url);
  }
  const message = "must be an http or https URL without a user name, and not of port 0";
  await checkRefusals(
    t,
    wrongUrls.map((url) => [withUrl(url), [`tenants.0.parties.0.webhook.url: ${message}`]]),
  );
});

t.test("the program reads standard input and prints JSON; it never quotes a wrong file", async (t) => {
  const other = await scenario(t, { file: null });
  const run = (input: string | Buffer, ...more: string[]) =>
    runProgram("apply", { args: ["-", "--reason", "new shop", ...more], env: environmentOf(other), input });
  const tenant = {
    id: "ten_new",
    name: "New",
    variant: "A",
    parties: [party("pty_new")],
    credentials: [{ access_key: "ak_new" }],
  };
  const tried = await run(JSON.stringify({ tenants: [tenant] }), "--dry-run");
  fits(
    t,
    { ...tried, stdout: JSON.parse(tried.stdout) },
    {
      code: 0,
      stderr: "a dry run: nothing was written\n",
      stdout: { is_dry_run: true, changed: 3, generated_secrets: { credentials: [{ secret: null }] } },
    },
  );
  const applied = await run(JSON.stringify({ tenants: [tenant] }));
  const reasons = await other.owner.rows("select distinct reason from report.audit where tenant = 'ten_new'");
  t.strictSame([...reasons], [{ reason: "new shop" }]);
  t.equal(applied.code, 0, applied.stderr);
  const credentials = [{ access_key: "ak_new", secret: /.{32}/ }];
  fits(t, JSON.parse(applied.stdout), { is_dry_run: false, changed: 3, generated_secrets: { credentials } });
  await other.admin.rows("select admin.revoke_credential('ak_new', 'lost')");
  const reapplied = await run(JSON.stringify({ tenants: [tenant] }));
  t.equal(reapplied.stderr, "ak_new is revoked, and stays so: create a new credential\n");
  const secret = "a secret of more than thirty-two characters";
  const wrong: [string | Buffer, RegExp][] = [
    [
      JSON.stringify({ tenants: [{ ...tenant, name: "", variant: "C" }] }),
      /^tenants\.0\.name: .*\ntenants\.0\.variant: .*\n$/,
    ],
    [`{"secret": "${secret}" x`, /^-: is not JSON at line 1, column 5\d\n$/],
    [`{"tenants": ${secret}}`, /^-: is not JSON at line 1, column 13\n$/],
    ['{"tenants": [', /^-: is not JSON at line 1, column 14\n$/],
    [Buffer.from("\ufeff{}", "utf16le"), /^-: is UTF-16, not UTF-8\n$/],
    [
      Buffer.from(JSON.stringify({ tenants: [{ ...tenant, name: "Müller" }] }), "latin1"),
      /^-: is not UTF-8 at line 1, column \d+\n$/,
    ],
    [`{"tenants": [], "tenants": ["${secret}"]}`, /^-: has a duplicate key at line 1, column 17\n$/],
  ];
  const again = await run(`\ufeff${JSON.stringify({ tenants: [tenant] })}`);
  fits(t, { ...again, stdout: JSON.parse(again.stdout) }, { code: 0, stdout: { changed: 0 } });
  for (const [input, stderr] of wrong) fits(t, await run(input), { code: 1, stdout: "", stderr });

  const shop = (stores: object[]) =>
    JSON.stringify({ tenants: [{ ...tenant, merchants: [merchant("mch_new", "pty_new", { stores })] }] });
  await run(shop(Array.from({ length: 11 }, (_, n) => ({ external_id: `S${n}` }))));
  const refused = await run(shop([]));
  fits(t, refused, {
    code: 1,
    stdout: "",
    stderr: /^stores: 11 would be removed: ten_new mch_new S0, .*allows it\.\n$/,
  });
  const allowed = await run(shop([]), "--allow-removals");
  t.equal(JSON.parse(allowed.stdout).removals.length, 11, allowed.stderr);
});
