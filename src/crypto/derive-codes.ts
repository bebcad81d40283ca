// Derives the codes of a batch again, from the master key, the batch's salt and the coupons' numbers. The database has
// no codes.
import { batchKey, lookupHash, makeCode } from "./coupon-code.ts";
import type { MasterKeys } from "./keys.ts";
import type { IssuedCode } from "../formats/codes-csv.ts";

export type CodeSource = { salt: Uint8Array; key_version: string; total_count: number };
/** A row of rules.read_export_page. */
export type CodeRow = { number: number; code_attempt: number; lookup_hash: string; coupon_id: string };
/** Rows after a number. */
type ReadPage = (after: number) => Promise<CodeRow[]>;
/** Runs the work of a page when it may use the thread. */
export type InTurn = <T>(work: () => T) => T | Promise<T>;
type Options = { onPage?: ((done: number, total: number) => void) | undefined; inTurn?: InTurn };

/** Yields the codes of each page. */
export async function* deriveCodes(
  keys: MasterKeys,
  { salt, key_version, total_count }: CodeSource,
  readPage: ReadPage,
  { onPage = () => {}, inTurn = (work) => work() }: Options = {},
): AsyncGenerator<IssuedCode[], void, undefined> {
  const key = batchKey(keys, key_version, salt);
  const derive = ({ number, code_attempt, lookup_hash, coupon_id }: CodeRow): IssuedCode => {
    const code = makeCode(keys, key_version, key, number, code_attempt);
    // A wrong master key with the right version would derive codes that no one can redeem.
    if (lookupHash(keys, code) !== lookup_hash)
      throw new Error("these coupons were minted with another COUPON_MASTER_KEY");
    return { coupon_id, code };
  };
  let after = 0;
  while (after < total_count) {
    const page = await readPage(after);
    const last = page.at(-1);
    // A truncated file looks complete, so this must be an error.
    if (last === undefined) throw new Error(`only ${after} of ${total_count} coupons found`);
    yield await inTurn(() => page.map(derive));
    after = last.number;
    onPage(after, total_count);
  }
}
