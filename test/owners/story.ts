// One story of two tenants, told for both sides of each, and then their twins. Test files begin with it.
import type { Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { zoneOf } from "../support/business-days.ts";
import { decimalsOf, major, moment, pick, type Row, type Window } from "./books.ts";
import { closeDay, sequence } from "./days.ts";
import { tellLife, tellNextDay } from "./lives.ts";
import { enterAudit, openTeller, type Teller } from "./teller.ts";
import { createOwner, declare, describeTenant, partyOf, sides, type Owner, type Variant } from "./tenants.ts";
import { copyTenants, enterTwins } from "./twin.ts";

/** `url`: of the receiver of webhooks. Files of statements are downloaded with HTTP only. */
export async function tellStory(t: Test, { http = false, url = "http://127.0.0.1:9" } = {}): Promise<Teller> {
  const teller = await openTeller(t, http);
  const { owners } = teller;
  for (const variant of ["A", "B"] as const) {
    await provision(teller, variant);
    owners.push(...sides.map((side) => createOwner(variant, side)));
  }
  const [a1, a2, b1, b2] = owners as [Owner, Owner, Owner, Owner];
  for (const owner of [a1, a2]) await tellLife({ teller, owner });
  for (const owner of [a1, a2]) await closeDay({ teller, owner });
  // On this day only one distributor of Variant B has a book.
  await tellLife({ teller, owner: b1 });
  await closeDay({ teller, owner: b1 }, { isOneOfSeveral: false });
  await tellLife({ teller, owner: b2 });
  await closeDay({ teller, owner: b2 });
  await sequence(teller);
  for (const one of [a1, b1]) await subscribe(teller, one, url);
  for (const owner of owners) await tellNextDay({ teller, owner });
  await sequence(teller);
  return teller;
}

/** From now on the owners are those of the twins too. */
export async function addTwins(teller: Teller): Promise<void> {
  const { world, psql, books, owners } = teller;
  await copyTenants(world, psql);
  const twins = enterTwins(books, owners);
  for (const [index, twin] of twins.entries()) teller.calendar.pass(twin, teller.calendar.dayOf(owners[index]!));
  owners.push(...twins);
  teller.sequenced = books.of("event").length;
}

/** Two owners at a time, one of each variant, so that what one changes is not hidden by what another one changes. */
export const pairs = (owners: Owner[]): Owner[][] => [0, 1, 4, 5].map((index) => [owners[index]!, owners[index + 2]!]);

async function provision(teller: Teller, variant: Variant): Promise<void> {
  const { world, calendar } = teller;
  const declared = describeTenant(variant);
  // The same internal IDs in both tenants, none of them the number of a tenant.
  for (const [table, column, start] of [
    ["party", "party_id", 11],
    ["template", "template_id", 21],
    ["store", "store_id", 31],
  ])
    await world.owner.rows(`alter table core.${table} alter column ${column} restart with ${start}`);
  const { id: tenant } = declared;
  const at = await applied(teller, tenant, describeChanges(declared), () => world.apply({ tenants: [declared] }));
  // A zone that no file may declare.
  const zone = zoneOf(calendar.noon);
  await world.owner.rows(
    "update core.party p set time_zone = $2 from core.tenant t where t.tenant_id = p.tenant_id and t.external_id = $1",
    [tenant, zone],
  );
  enterDeclared(teller, declared, zone, at);
}

/** Provisions, and enters an audit row for each of these objects with its new fields. */
async function applied(teller: Teller, tenant: string, made: Record<string, Row>, act: () => Promise<unknown>) {
  const { at } = await teller.during(act);
  for (const target of Object.keys(made).toSorted()) {
    const details = Object.fromEntries(
      Object.entries(made[target]!).map(([name, value]) => [name, { old: null, new: value }]),
    );
    enterAudit(teller, { tenant, action: "apply", target, details: jsonText(details) }, at);
  }
  return at;
}

/** As PostgreSQL writes jsonb: short keys first. */
function jsonText(value: any): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keys = Object.keys(value).toSorted((a, b) => a.length - b.length || (a < b ? -1 : 1));
  return `{${keys.map((key) => `${JSON.stringify(key)}: ${jsonText(value[key])}`).join(", ")}}`;
}

const present = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

/** The fields of each object that a file declares for the first time. */
function describeChanges(declared: Declared): Record<string, Row> {
  const { id, name, variant, amount_unit, sandbox, parties, merchants, templates, credentials } = declared as any;
  const made: Record<string, Row> = { [id]: { name, variant, amount_unit, sandbox } };
  for (const { id: party, name, public_key } of parties) made[party] = present({ name, time_zone: "UTC", public_key });
  for (const { id: merchant, name, party, delegates, stores = [] } of merchants) {
    const places = stores.map((store: any) => [`store ${store.external_id}`, store.terminals.toSorted()]);
    made[merchant] = present({ name, party, delegates: delegates?.toSorted(), ...Object.fromEntries(places) });
  }
  for (const { id: template, discount, valid_from, valid_to, merchants = "all", ...more } of templates) {
    made[template] = present({
      lock_ttl_seconds: 900,
      after_reversal: "consumed",
      ...more,
      merchants: merchants === "all" ? merchants : merchants.toSorted(),
      discount_type: discount.type,
      discount_amount: discount.amount,
      discount_percent: discount.percent,
      max_discount_amount: discount.max_amount,
      valid_from: new Date(valid_from).toISOString(),
      valid_to: new Date(valid_to).toISOString(),
    });
  }
  for (const { access_key, party } of credentials) made[access_key] = present({ party });
  return made;
}

type Declared = ReturnType<typeof describeTenant>;

function enterDeclared({ books }: Teller, declared: Declared, zone: string, created_at: Window): void {
  const { id: tenant, name, variant, amount_unit } = declared;
  books.note("tenant", { tenant, name, variant, amount_unit, is_sandbox: "true", created_at });
  for (const { id: party, name, public_key = null } of declared.parties as any[])
    books.note("party", { tenant, party, name, time_zone: zone, created_at, public_key });
  for (const { id: merchant, name, party, delegates = [], stores } of declared.merchants as any[]) {
    const shown = { delegates: list(delegates.toSorted()), stores: stores === undefined ? null : showStores(stores) };
    books.note("merchant", { tenant, merchant, name, party, ...shown, created_at });
  }
  for (const template of declared.templates as any[])
    books.note("template", { tenant, ...showTemplate(template, amount_unit), created_at });
  for (const { access_key } of declared.credentials)
    books.note("credential", { tenant, access_key, party: partyOf(access_key), created_at });
}

const list = (items: string[]): string => `{${items.join(",")}}`;

function showStores(stores: { external_id: string; terminals: string[] }[]): string {
  const shown = stores.map(({ external_id, terminals }) => `"${external_id}": ${JSON.stringify(terminals.toSorted())}`);
  return `{${shown.join(", ").replaceAll('","', '", "')}}`;
}

function showTemplate(template: any, unit: string): Row {
  const { currency, discount } = template;
  const show = (amount?: number) =>
    amount === undefined
      ? null
      : major(unit === "minor" ? amount : Math.round(amount * 10 ** decimalsOf[currency]!), currency);
  const names = "template=id name maker distributor currency after_reversal discount_type=type";
  return {
    ...pick({ after_reversal: "consumed", ...template, type: discount.type }, names),
    discount_amount: show(discount.amount),
    discount_percent: discount.percent === undefined ? null : discount.percent.toFixed(4),
    max_discount_amount: show(discount.max_amount),
    min_order_amount: show(template.min_order_amount),
    skus: template.skus === undefined ? null : list(template.skus),
    merchants: template.merchants === undefined ? null : list(template.merchants.toSorted()),
    valid_from: moment(template.valid_from),
    valid_to: moment(template.valid_to),
    lock_ttl_seconds: String(template.lock_ttl_seconds ?? 900),
  };
}

/** Declares the webhooks of a tenant's distributors. Events from now on are delivered. */
async function subscribe(teller: Teller, { tenant, variant }: Owner, url: string): Promise<void> {
  const { world, books } = teller;
  const rows = books.of("party").filter((row) => row.tenant === tenant && row.party.startsWith("pty_d"));
  const parties = rows.map((row) => {
    const full = `${url}/${tenant}/${row.party}`;
    // Reports show no path.
    row.webhook_url = url;
    books.note("webhook", { tenant, party: row.party, url, full });
    return { id: row.party, name: row.name, webhook: { url: full, secret: newWebhookSecret() } };
  });
  const made = Object.fromEntries(parties.map(({ id, webhook }) => [id, { webhook_url: new URL(webhook.url).origin }]));
  await applied(teller, tenant, made, () => world.apply(declare({ tenant, variant }, { parties })));
}
