// What apply declared: tenants, parties, merchants, templates, credentials; and the master key.
import { major, moment, type Cell, type Row, type Tenant, type Expected } from "../books.ts";
import type { Story } from "../story.ts";
import { partyOf } from "../tenants.ts";

const list = (items: string[]): string => `{${items.join(",")}}`;
const optional = (value: unknown): Cell => (value === undefined ? null : String(value));

export function expectProvisioned({ books, calendar }: Story): Expected {
  const { tenants, webhooks, revoked, keyRegisteredAt } = books;
  const each = (kind: string, row: (one: any, tenant: Tenant) => Row) =>
    tenants.flatMap((tenant) =>
      tenant.document[kind].map((one: any) => ({ tenant: tenant.id, ...row(one, tenant) }) as Row),
    );
  return {
    tenant: tenants.map(({ id, variant, unit, document, appliedAt }) => ({
      tenant: id,
      name: document.name,
      variant,
      amount_unit: unit,
      created_at: appliedAt,
    })),
    party: each("parties", ({ id, name }, tenant) => {
      const webhook = webhooks.find((one) => one.tenant === tenant && one.party === id);
      return {
        party: id,
        name,
        time_zone: calendar.zone({ tenant, party: id }),
        webhook_url: webhook?.url ?? null,
        webhook_secret_rotated_at: webhook?.rotatedAt ?? null,
        webhook_disabled_at: webhook?.disabledAt ?? null,
        created_at: tenant.appliedAt,
      };
    }),
    merchant: each("merchants", ({ id, name, party, delegates, stores }, { appliedAt }) => ({
      merchant: id,
      name,
      party,
      delegates: list((delegates ?? []).toSorted()),
      stores: stores === undefined ? null : showStores(stores),
      created_at: appliedAt,
    })),
    template: each("templates", showTemplate),
    credential: each("credentials", ({ access_key }, { appliedAt }) => ({
      access_key,
      party: partyOf[access_key]!,
      created_at: appliedAt,
      revoked_at: revoked.get(access_key) ?? null,
    })),
    master_key: [{ version: "1", registered_at: keyRegisteredAt, is_in_use: "true" }],
  };
}

function showStores(stores: { external_id: string; terminals?: string[] }[]): string {
  const shown = stores.map(
    ({ external_id, terminals = [] }) => `"${external_id}": ${JSON.stringify(terminals.toSorted())}`,
  );
  return `{${shown.join(", ").replaceAll('","', '", "')}}`;
}

function showTemplate(template: any, { unit, appliedAt }: Tenant): Row {
  const { currency, discount } = template;
  const decimals = { EUR: 2, JPY: 0, BHD: 3 }[currency as string]!;
  const show = (amount: number | undefined): Cell =>
    amount === undefined ? null : major(unit === "minor" ? amount : Math.round(amount * 10 ** decimals), currency);
  return {
    template: template.id,
    name: template.name,
    maker: template.maker,
    distributor: optional(template.distributor),
    currency,
    discount_type: discount.type,
    discount_amount: show(discount.amount),
    discount_percent: discount.percent === undefined ? null : discount.percent.toFixed(4),
    max_discount_amount: show(discount.max_amount),
    min_order_amount: show(template.min_order_amount),
    skus: template.skus === undefined ? null : list(template.skus),
    merchants: template.merchants === undefined ? null : list(template.merchants.toSorted()),
    valid_from: moment(template.valid_from),
    valid_to: moment(template.valid_to),
    lock_ttl_seconds: String(template.lock_ttl_seconds ?? 900),
    after_reversal: template.after_reversal ?? "consumed",
    created_at: appliedAt,
  };
}
