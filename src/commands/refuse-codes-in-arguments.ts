// Arguments reach the audit log and messages of the database, where no code may be.
import { containsCode } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { isMadeId } from "../http/code-places.ts";

/**
 * Throws if an argument of a command contains a coupon code. The message does not repeat it. An ID of a batch or event
 * may look like a code by chance, so it is exempt.
 */
export function refuseCodesInArguments(keys: MasterKeys, args: readonly string[]): void {
  if (args.some((text) => containsCode(keys, text) && !isMadeId(text)))
    throw new Error("an argument contains a coupon code: name a coupon by its ID, cpn_…");
}
