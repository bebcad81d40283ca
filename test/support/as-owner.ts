// One statement as the owner of all objects, as a migration would run it.
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";

export async function asOwner<T>(address: Address, text: string, params: unknown[] = []): Promise<T[]> {
  const session = openSession(address, { name: "coupon test", role: "coupon_owner" });
  try {
    return await session.rows<T>(text, params);
  } finally {
    await session.end();
  }
}
