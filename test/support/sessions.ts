// Other database sessions that hold what a request needs, until the test releases it.
import { hashBody } from "../../src/crypto/body-hash.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Scenario } from "./scenario.ts";

// Another process of the service during this request: it has performed it and not yet committed.
export async function beginRequest(
  service: Pick<Scenario, "address" | "keys">,
  accessKey: string,
  operation: string,
  body: { request_id: string; coupon: string } & Record<string, unknown>,
) {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_api" });
  const [credential] = await session.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential($1)",
    [accessKey],
  );
  const { request_id, ...values } = body;
  const call = {
    credential_id: credential!.credential_id,
    nonce: null,
    operation,
    request_id,
    idempotency_key: null,
    body_hash: hashBody(service.keys, body),
    args: { ...values, coupon: lookupHash(service.keys, body.coupon) },
  };
  await session.run("begin");
  await session.rows("select * from gate.perform($1, $2::text::jsonb, true)", [
    credential!.tenant_id,
    JSON.stringify([call]),
  ]);
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
