// The calls and answers of gate.perform_calls. The body of a lock or redeem that is granted is written here.
import { externalId } from "../formats/id.ts";

// nonce null: already spent. body_hash null: the call is a read.
export type Call = {
  credential_id: number;
  nonce: string | null;
  operation: string;
  request_id: string;
  idempotency_key: string | null;
  body_hash: string | null;
  args: Record<string, unknown>;
};
// code: the error code, null for a success. resource: what a NOT_FOUND is about.
export type Outcome = {
  status: number;
  code: string | null;
  resource: string | null;
  body: string;
  isReplay: boolean;
};

// http_status null: the call is handed back. body null: a lock or redeem is granted, and the columns after it are set.
export type AnswerRow = {
  ordinal: number;
  http_status: number | null;
  code: string | null;
  resource: string | null;
  is_replay: boolean;
} & ({ body: string } | ({ body: null } & Grant));

// The amount has the decimals that the answer has.
export type Grant = {
  redemption_id: string;
  coupon_id: string;
  discount_amount: string;
  currency: string;
  lock_expires_at: Date | null;
};

export const answerColumns =
  "ordinal, http_status, code, resource, body, is_replay, " +
  "redemption_id, coupon_id, discount_amount, currency, lock_expires_at";

/** Returns null if the call is handed back. */
export function toOutcome(row: AnswerRow): Outcome | null {
  const { http_status: status, code, resource, is_replay: isReplay } = row;
  if (status === null) return null;
  return { status, code, resource, body: row.body ?? renderGrant(row as Grant), isReplay };
}

/** Does the same as rules.render_grant in the database. */
export function renderGrant(grant: Grant): string {
  const { redemption_id, coupon_id, discount_amount, currency, lock_expires_at: end } = grant;
  return (
    `{"ok":true,"redemption":"${externalId("red", redemption_id)}","coupon_id":"${externalId("cpn", coupon_id)}",` +
    `"discount_amount":${discount_amount},"currency":"${currency}"` +
    (end === null ? "}" : `,"lock_expires_at":"${end.toISOString()}"}`)
  );
}
