// The search: the ID of a coupon, redemption, reversal or batch, or a pasted code. Of a code only its lookup hash is
// used, and only once: it is in no address, no statement and no log.
import { checkCode, lookupHash, normalizeCode } from "../crypto/coupon-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Reader } from "./doors.ts";

type Parts = { reader: Reader; keys: MasterKeys };

/** Returns the page about it; null if there is none. */
export async function findTarget({ reader, keys }: Parts, text: string): Promise<string | null> {
  const read = async (query: string, value: string): Promise<string | null> =>
    (await reader.rows<{ target: string }>(query, [value]))[0]?.target ?? null;
  if (/^cpn_\w{26}$/.test(text)) return `/coupons/${text}`;
  if (/^bat_\w{26}$/.test(text)) return `/batches/${text}`;
  if (/^(red|rvs)_\w{26}$/.test(text))
    return read("select '/coupons/' || coupon as target from report.find_redemption($1)", text);
  const code = normalizeCode(text);
  if (code === null || !checkCode(keys, code)) return null;
  return read("select '/coupons/' || coupon as target from console.find_coupons($1)", lookupHash(keys, code));
}
