// The search: an ID of the service, that of an order or a request, an idempotency-key, a name, or a pasted code. Of a
// code only its lookup hash is used, and only once: it is in no address, no statement and no log.
import { checkCode, lookupHash, normalizeCode } from "../crypto/coupon-code.ts";
import { containsCode } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Reader } from "./doors.ts";
import type { Page } from "./page.ts";

// One coupon or several: more than two need not be known.
const ofTill = `
  select distinct coupon
  from (select coupon from report.redemption where order_id = $1
        union all select coupon from report.request where request_id = $1
        union all select coupon from report.request where idempotency_key = $1) h
  limit 2`;

// A distributor sees events of redemptions that it does not see themselves.
const ofId = `
  select '/coupons/' || coupon as target
  from (select coupon from report.find_redemption($1) union all select coupon from report.find_event($1)) h
  where coupon is not null
  limit 1`;

// What tenants name themselves: two of them may use the same ID. `column`: also its view.
const named = [
  { prefix: "mch", column: "merchant", list: "/merchants" },
  { prefix: "pty", column: "party", list: "/parties" },
  { prefix: "tpl", column: "template", list: "/templates" },
];

/** `pages`: those that there are. */
type Parts = { reader: Reader; keys: MasterKeys; pages: readonly Page[] };

/** Returns the page about it; null if there is none. */
export async function findTarget(parts: Parts, text: string): Promise<string | null> {
  const { reader, keys } = parts;
  const read = async (query: string, value: string): Promise<string | null> =>
    (await reader.rows<{ target: string }>(query, [value]))[0]?.target ?? null;
  if (/^cpn_\w{26}$/.test(text)) return `/coupons/${text}`;
  if (/^bat_\w{26}$/.test(text)) return `/batches/${text}`;
  if (/^(red|rvs|led|evt)_\w{26}$/.test(text)) return read(ofId, text);
  const code = normalizeCode(text);
  if (code !== null && checkCode(keys, code))
    return read("select '/coupons/' || coupon as target from console.find_coupons($1)", lookupHash(keys, code));
  if (text === "" || containsCode(keys, text)) return null;
  const hits = await reader.rows<{ coupon: string | null }>(ofTill, [text]);
  const [hit] = hits;
  if (hit === undefined) return findNamed(parts, text);
  return hits.length === 1 && hit.coupon !== null
    ? `/coupons/${hit.coupon}`
    : `/search?${new URLSearchParams({ id: text })}`;
}

async function findNamed({ reader, pages }: Parts, text: string): Promise<string | null> {
  const lists = named.filter(({ list }) => pages.some(({ path }) => path === list));
  const ofPrefix = lists.find(({ prefix }) => text.startsWith(`${prefix}_`));
  if (ofPrefix !== undefined) {
    const { column, list } = ofPrefix;
    const hits = await reader.rows<{ tenant: string }>(
      `select tenant from report.${column} where ${column} = $1 limit 2`,
      [text],
    );
    if (hits.length === 1) return `${list}/${hits[0]!.tenant}/${text}`;
    if (hits.length > 1) return `${list}?${new URLSearchParams({ [column]: text })}`;
  }
  for (const { column, list } of lists) {
    const isInName = `select from report.${column} where position(lower($1) in lower(name)) > 0 limit 1`;
    if ((await reader.rows(isInName, [text])).length > 0) return `${list}?${new URLSearchParams({ name: text })}`;
  }
  return null;
}
