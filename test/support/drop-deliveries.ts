// Deletes deliveries that a test ignores. The table keeps them until they are accepted.
import type { Address } from "../../src/common/database-address.ts";
import { openSession } from "../../src/database/connect.ts";

export async function dropDeliveries(address: Address, where = "true"): Promise<void> {
  // Acts as the login itself, because only a superuser can switch off triggers.
  const login = openSession(address, { name: "coupon test" });
  try {
    await login.run(`set session_replication_role = replica; delete from core.delivery where ${where}`);
  } finally {
    await login.end();
  }
}
