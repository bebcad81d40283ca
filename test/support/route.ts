// For `npm test -- --router`: a scenario's gate calls its database through a router of its own, as the second of two
// cells. The first has no tenants.
import { openSession } from "../../src/database/connect.ts";
import { addCell, withRouter } from "../../src/commands/router-database.ts";
import type { Address } from "../../src/config/database-address.ts";
import { asAdmin, createDatabase, readRun } from "./database.ts";
import type { Test } from "tap";

/** Where a gate calls the database: the database itself, unless the run has a router. */
export async function routeTo(t: Pick<Test, "teardown">, cell: Address): Promise<Address> {
  const { router } = readRun();
  if (router === undefined) return cell;
  const { address: empty, drop } = await createDatabase();
  const database = `router_${process.pid}_${(count += 1)}`;
  await asAdmin({ ...router, database: "postgres" }, (admin) =>
    admin.rows(`create database "${database}" template "${router.database}"`),
  );
  t.teardown(async () => {
    await asAdmin({ ...router, database: "postgres" }, (admin) =>
      admin.rows(`drop database "${database}" with (force)`),
    );
    await drop();
  });
  await becomeCell(cell, 2);
  const address = { ...router, database };
  await withRouter(address, async (routing) => {
    for (const [index, each] of [empty, cell].entries())
      await addCell(routing, index + 1, { ...each, user: each.user ?? "postgres" });
  });
  return address;
}

let count = 0;

/** A database of a server with many takes its number from a setting of its own. */
async function becomeCell(address: Address, number: number): Promise<void> {
  await asAdmin(address, (admin) => admin.rows(`alter database "${address.database}" set coupon.cell = '${number}'`));
  const session = openSession(address, { name: "coupon test" });
  await session.rows("select admin.join_cell($1)", [number]);
  await session.end();
}
