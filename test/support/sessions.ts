// Other database sessions that hold what a request needs, until the test releases it.
import { hashBody } from "../../src/crypto/body-hash.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { openSession } from "../../src/database/connect.ts";
import { answerColumns, toOutcome, type AnswerRow } from "../../src/gate/answer.ts";
import { drawTails } from "../../src/formats/id.ts";
import { newRequestId } from "./request-id.ts";
import type { Scenario } from "./scenario.ts";

/** A call as the HTTP layer hands it to the database. What it leaves out has a usual value. */
export type GateCall = {
  operation: string;
  args: object;
  credential_id?: number;
  nonce?: string;
  request_id?: string;
  idempotency_key?: string;
  body_hash?: string | null;
};
// A call that is handed back has no body.
export type GateRow = { http_status: number | null; body: string };

/** A connection of the service with one credential, whose transactions are the test's own. */
export async function openGateSession({ address }: Pick<Scenario, "address">, accessKey: string) {
  const session = openSession(address, { name: "coupon test gate", role: "coupon_api" });
  const [caller] = await session.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential($1)",
    [accessKey],
  );
  const { tenant_id, credential_id } = caller!;
  const usual = { credential_id, nonce: null, idempotency_key: null, body_hash: "0".repeat(16) };

  /** Sends the calls as one group. */
  async function send(calls: GateCall[], isAlone: boolean): Promise<GateRow[]> {
    const sent = calls.map((call) => ({ ...usual, request_id: newRequestId(), ...call }));
    const text = `select ${answerColumns} from unnest(gate.perform_calls($1, $2::text::jsonb, $3, $4)) order by 1`;
    const params = [tenant_id, JSON.stringify(sent), drawTails(sent.length), isAlone];
    const rows = await session.rows<AnswerRow>(text, params);
    return rows.map((row) => ({ http_status: row.http_status, body: toOutcome(row)?.body ?? "" }));
  }

  return { session, send };
}

// Another process of the service during this request: it has performed it and not yet committed.
export async function beginRequest(
  service: Pick<Scenario, "address" | "keys">,
  accessKey: string,
  operation: string,
  body: { request_id: string; coupon: string } & Record<string, unknown>,
) {
  const { session, send } = await openGateSession(service, accessKey);
  const { request_id, ...values } = body;
  const args = { ...values, coupon: lookupHash(service.keys, body.coupon) };
  await session.run("begin");
  await send([{ operation, args, request_id, body_hash: hashBody(service.keys, body) }], true);
  return async (how: "commit" | "rollback") => {
    await session.run(how);
    await session.end();
  };
}

// A psql session that holds the row of a coupon. Returns the function that releases it.
export async function holdCoupon(service: Pick<Scenario, "address">, couponId: string): Promise<() => Promise<void>> {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  await session.run("begin");
  await session.rows("select from core.coupon c where rules.format_id('cpn', c.coupon_id) = $1 for update", [couponId]);
  return async () => {
    await session.run("rollback");
    await session.end();
  };
}
