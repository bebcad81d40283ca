// Provisioning: everything that a file declares exists afterwards, or nothing of it.
import t from "tap";
import { ApplyError, type Applied } from "../../src/commands/apply.ts";
import type { Database } from "../../src/database/types.ts";
import { open, webhookPurpose } from "../../src/crypto/seal.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { client } from "../support/client.ts";
import { document } from "../support/provisioning.ts";

const validity = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };

// A tenant for these tests. The fields of `more` replace the usual ones.
function acme(more: Record<string, unknown> = {}) {
  const template = {
    id: "tpl_1",
    name: "5.00 off",
    maker: "pty_maker",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    ...validity,
  };
  return {
    tenants: [
      {
        id: "ten_acme",
        name: "Acme",
        variant: "B",
        parties: [
          { id: "pty_maker", name: "Maker", webhook: { url: "https://example.com/hook" } },
          { id: "pty_shop", name: "Shop" },
        ],
        merchants: [
          {
            id: "mch_1",
            name: "Shop 1",
            party: "pty_shop",
            delegates: ["pty_maker"],
            stores: [{ external_id: "S1", terminals: ["T1"] }],
          },
        ],
        templates: [template],
        credentials: [{ access_key: "ak_acme", party: "pty_maker" }],
        ...more,
      },
    ],
  };
}

async function issuesOf(service: Running, file: unknown): Promise<string[]> {
  try {
    await service.apply(file);
    return [];
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error;
    return error.issues.map(({ path, message }) => `${path}: ${message}`);
  }
}

// Everything that provisioning writes, except the audit.
async function stored(owner: Database): Promise<string> {
  const tables = [
    "tenant",
    "party",
    "webhook",
    "merchant",
    "merchant_delegate",
    "store",
    "terminal",
    "template",
    "template_merchant",
    "credential",
  ];
  const rows = await Promise.all(
    tables.map((table) => owner.rows(`select r::text from core.${table} r order by r::text`)),
  );
  return JSON.stringify(rows);
}

t.test("a generated secret is shown once and signs; applying the file again changes nothing", async (t) => {
  const service = await startService(t);
  const first = (await service.apply(acme())) as Applied;
  const [credential] = first.generated_secrets.credentials;
  t.match(credential, { access_key: "ak_acme", secret: /^[\w-]{43}$/ });
  const [webhook] = first.generated_secrets.webhooks;
  t.match(webhook, { tenant: "ten_acme", party: "pty_maker", secret: /^whsec_/ });
  const [sealed] = await service.owner.rows<{ sealed_secret: Uint8Array }>("select sealed_secret from core.webhook");
  t.equal(open(service.keys, webhookPurpose("ten_acme", "pty_maker"), sealed!.sealed_secret), webhook!.secret);
  const caller = client({ url: service.url, accessKey: "ak_acme", secret: credential!.secret });
  const created = await caller.post("/v1/batches", { request_id: newRequestId(), template: "tpl_1", total_count: 1 });
  t.equal(created.status, 200, created.text);

  const before = await stored(service.owner);
  const second = (await service.apply(acme())) as Applied;
  t.match(second, { changed: 0, generated_secrets: { credentials: [], webhooks: [] } });
  t.equal(await stored(service.owner), before);
  t.match(await service.apply(document), { changed: 0 }, "also with given secrets");
});

t.test("an omitted time zone stays unchanged, and is UTC for a new party", async (t) => {
  const service = await startService(t);
  const parties = (more: object) =>
    acme({
      parties: [
        { id: "pty_maker", name: "Maker", ...more },
        { id: "pty_shop", name: "Shop" },
      ],
    });
  await service.apply(parties({ time_zone: "Asia/Tokyo" }));
  t.match(await service.apply(parties({})), { changed: 0 });
  t.strictSame(
    [
      ...(await service.owner.rows(
        `select p.external_id as party, p.time_zone
         from core.party p
         join core.tenant t using (tenant_id)
         where t.external_id = 'ten_acme'
         order by 1`,
      )),
    ],
    [
      { party: "pty_maker", time_zone: "Asia/Tokyo" },
      { party: "pty_shop", time_zone: "UTC" },
    ],
  );
});

t.test("a secret given later replaces the generated one", async (t) => {
  const service = await startService(t);
  await service.apply(acme());
  const secret = "a secret of more than thirty-two characters";
  t.match(await service.apply(acme({ credentials: [{ access_key: "ak_acme", party: "pty_maker", secret }] })), {
    changed: 1,
  });
  const answer = await client({ url: service.url, accessKey: "ak_acme", secret }).get("/v1/batches/bat_none");
  t.match(answer.json, { code: "NOT_FOUND" });
});

t.test("the database holds no secret in plain text", async (t) => {
  const service = await startService(t);
  const secret = "a secret of more than thirty-two characters";
  await service.apply(acme({ credentials: [{ access_key: "ak_acme", party: "pty_maker", secret }] }));
  const [row] = await service.owner.rows<{ text: string }>(
    "select string_agg(encode(sealed_secret || secret_hash, 'escape'), ' ') as text from core.credential",
  );
  t.notMatch(row!.text, "thirty-two");
});

t.test("every wrong field is reported with its path, and nothing is stored", async (t) => {
  const service = await startService(t);
  const before = await stored(service.owner);
  const template = acme().tenants[0]!.templates[0]!;
  const cases: [string, Record<string, unknown>, string[]][] = [
    ["an unknown field", { colour: "red" }, ["tenants.0.colour: unknown field"]],
    [
      "a credential without its party",
      { credentials: [{ access_key: "ak_acme" }] },
      ["tenants.0.credentials.0.party: is required in variant B"],
    ],
    [
      "a party in variant A",
      { variant: "A" },
      ["tenants.0.credentials.0.party: is allowed in variant B only: a credential of variant A belongs to its tenant"],
    ],
    [
      "a short secret",
      { credentials: [{ access_key: "ak_acme", party: "pty_maker", secret: "short" }] },
      ["tenants.0.credentials.0.secret: must be 32 to 256 printable characters"],
    ],
    [
      "an unknown zone",
      { parties: [{ id: "pty_maker", name: "M", time_zone: "Mars/Base" }] },
      ["tenants.0.parties.0.time_zone: must be an IANA time zone such as Europe/Berlin"],
    ],
    [
      "an offset instead of a zone",
      { parties: [{ id: "pty_maker", name: "M", time_zone: "+02:00" }] },
      ["tenants.0.parties.0.time_zone: must be an IANA time zone such as Europe/Berlin"],
    ],
    [
      "a malformed webhook secret",
      { parties: [{ id: "pty_maker", name: "M", webhook: { url: "https://x.example", secret: "whsec_short" } }] },
      ["tenants.0.parties.0.webhook.secret: must be whsec_ and the base64 of 24 to 64 bytes"],
    ],
    ["a duplicate id", { templates: [template, template] }, ["tenants.0.templates.1.id: is a duplicate in this list"]],
    [
      "a validity that ends before it begins",
      { templates: [{ ...template, valid_to: template.valid_from }] },
      ["tenants.0.templates.0.valid_to: must be later than valid_from"],
    ],
    [
      "a percentage with five decimals",
      { templates: [{ ...template, discount: { type: "percent", percent: 0.00001 } }] },
      ["tenants.0.templates.0.discount.percent: must have at most 4 decimals"],
    ],
    [
      "an amount beyond the limit",
      { templates: [{ ...template, discount: { type: "fixed", amount: 1e12 } }] },
      ["tenants.0.templates.0.discount.amount: must be below 10^12"],
    ],
  ];
  for (const [name, more, expected] of cases) t.strictSame(await issuesOf(service, acme(more)), expected, name);
  t.equal(await stored(service.owner), before);
});

t.test("errors that only the database can find are reported with their paths too, and nothing is stored", async (t) => {
  const service = await startService(t);
  const before = await stored(service.owner);
  const template = acme().tenants[0]!.templates[0]!;
  const cases: [string, Record<string, unknown>, RegExp[]][] = [
    [
      "an unknown party",
      { merchants: [{ id: "mch_1", name: "m", party: "pty_ghost" }] },
      [/^tenants\.0\.merchants\.0\.party: /],
    ],
    [
      "an unknown currency",
      { templates: [{ ...template, currency: "QQQ" }] },
      [/^tenants\.0\.templates\.0\.currency: /],
    ],
    [
      "more decimals than the currency has",
      { templates: [{ ...template, discount: { type: "fixed", amount: 5.001 }, min_order_amount: 0.001 }] },
      [/^tenants\.0\.templates\.0\.discount\.amount: /, /^tenants\.0\.templates\.0\.min_order_amount: /],
    ],
    [
      "minor units that are not integers",
      { amount_unit: "minor", templates: [{ ...template, discount: { type: "fixed", amount: 5.5 } }] },
      [/^tenants\.0\.templates\.0\.discount\.amount: /],
    ],
    [
      "an access key of another tenant",
      { credentials: [{ access_key: "ak_maker", party: "pty_maker" }] },
      [/^tenants\.0\.credentials\.0\.access_key: /],
    ],
  ];
  for (const [name, more, expected] of cases) t.match(await issuesOf(service, acme(more)), expected, name);
  t.equal(await stored(service.owner), before);
});

t.test("an access key that two tenants of the file claim is refused", async (t) => {
  const service = await startService(t);
  const [one] = acme().tenants;
  const file = { tenants: [one, { ...one, id: "ten_twin" }] };
  t.strictSame(await issuesOf(service, file), ["tenants.1.credentials.0.access_key: is a duplicate in this file"]);
});
