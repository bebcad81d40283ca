// The search: the ID of a coupon, redemption, reversal, ledger entry or batch, that of an order or a request, an
// idempotency-key, or a pasted code. Of a code only its lookup hash is used, and only once: it is in no address, no
// statement and no log.
import { checkCode, lookupHash, normalizeCode } from "../crypto/coupon-code.ts";
import { containsCode } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Reader } from "./doors.ts";

// One coupon or several: more than two need not be known.
const ofTill = `
  select distinct coupon
  from (select coupon from report.redemption where order_id = $1
        union all select coupon from report.request where request_id = $1
        union all select coupon from report.request where idempotency_key = $1) h
  limit 2`;

type Parts = { reader: Reader; keys: MasterKeys };

/** Returns the page about it; null if there is none. */
export async function findTarget({ reader, keys }: Parts, text: string): Promise<string | null> {
  const read = async (query: string, value: string): Promise<string | null> =>
    (await reader.rows<{ target: string }>(query, [value]))[0]?.target ?? null;
  if (/^cpn_\w{26}$/.test(text)) return `/coupons/${text}`;
  if (/^bat_\w{26}$/.test(text)) return `/batches/${text}`;
  if (/^(red|rvs|led)_\w{26}$/.test(text))
    return read("select '/coupons/' || coupon as target from report.find_redemption($1)", text);
  const code = normalizeCode(text);
  if (code !== null && checkCode(keys, code))
    return read("select '/coupons/' || coupon as target from console.find_coupons($1)", lookupHash(keys, code));
  if (text === "" || containsCode(keys, text)) return null;
  const hits = await reader.rows<{ coupon: string | null }>(ofTill, [text]);
  const [hit] = hits;
  if (hit === undefined) return null;
  return hits.length === 1 && hit.coupon !== null
    ? `/coupons/${hit.coupon}`
    : `/search?${new URLSearchParams({ id: text })}`;
}
