// Databases of the test run as cells behind a router.
import type { Test } from "tap";
import { addCell } from "../../src/commands/router-database.ts";
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { asAdmin, createDatabase, readRun } from "./database.ts";

type Teardown = Pick<Test, "teardown">;

/**
 * Where a gate calls the database: the database itself. In a run with --router it is a router of its own, in front of
 * two cells, and the database is the second. The first has no tenants.
 */
export async function routeTo(t: Teardown, cell: Address): Promise<Address> {
  const { router } = readRun();
  if (router === undefined) return cell;
  const { address: empty, drop } = await createDatabase();
  const database = `router_${process.pid}_${(count += 1)}`;
  const inServer = { ...router, database: "postgres" };
  await asAdmin(inServer, (admin) => admin.rows(`create database "${database}" template "${router.database}"`));
  t.teardown(async () => {
    await asAdmin(inServer, (admin) => admin.rows(`drop database "${database}" with (force)`));
    await drop();
  });
  await becomeCell(cell, 2);
  const address = { ...router, database };
  await addCells(address, [empty, cell]);
  return address;
}

let count = 0;

/** The number of the first tenant of a scenario: behind a router, it lives in the second cell. */
export const firstTenant = (): number => (readRun().router === undefined ? 1 : 1_000_001);

/** The application_name of a gate's connection, as the database of a scenario sees it. */
export const nameSeen = (name: string): string => (readRun().router === undefined ? name : "coupon router");

/** A database of a server with many takes its number from a setting of its own. */
export async function becomeCell(address: Address, number: number): Promise<void> {
  await asAdmin(address, (admin) => admin.rows(`alter database "${address.database}" set coupon.cell = '${number}'`));
  const session = openSession(address, { name: "coupon test" });
  await session.rows("select admin.join_cell($1)", [number]);
  await session.end();
}

/** Numbers them from 1 on. */
export async function addCells(router: Address, cells: Address[]): Promise<void> {
  for (const [index, cell] of cells.entries()) await addCell(router, index + 1, { user: "postgres", ...cell });
}
