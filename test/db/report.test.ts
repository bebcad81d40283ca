// Reporting tools and DBAs read every view when it has rows, as their roles, each in a session of its own: what a
// view calls runs as its reader, and what another role has used before is no longer looked up.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { states, type State } from "./api/states.ts";
import { arrange, setUpVariant } from "../support/arrange.ts";
import { startService } from "../support/service.ts";

t.test("each view of report is read with its rows", async (t) => {
  const service = await startService(t);
  const all = Object.keys(states) as State[];
  await arrange(service, await setUpVariant(service, "A"), all, 1);
  await arrange(service, await setUpVariant(service, "B"), all, 1);
  await service.owner.rows("select jobs.sequence_events(1000)");
  const views = await service.owner.rows<{ name: string }>(
    "select c.relname as name from pg_class c where c.relnamespace = 'report'::regnamespace and c.relkind = 'v' order by 1",
  );
  // A reader's own array or comparison of a column has no operators, when its type is one of ours.
  const ours = await service.owner.rows(
    `select a.attrelid::regclass::text as view, a.attname as column from pg_attribute a
     join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
     where c.relnamespace = 'report'::regnamespace and a.attnum > 0 and t.typtype = 'd'`,
  );
  t.strictSame([...ours], [], "all columns are of base types");
  const filled = new Set<string>();
  for (const role of ["coupon_report", "coupon_admin"]) {
    for (const { name } of views) {
      const session = openSession(service.address, { name: "coupon test reader", role });
      const rows = await session.rows(`select * from report.${name}`).catch((error: Error) => error);
      await session.end();
      if (!Array.isArray(rows)) t.fail(`${role} reads report.${name}: ${rows.message}`);
      else if (rows.length > 0) filled.add(name);
    }
  }
  for (const name of [
    "coupon",
    "redemption",
    "event",
    "ledger",
    "voiding",
    "posting",
    "maker_balance",
    "merchant_balance",
    "distributor_balance",
  ]) {
    t.ok(filled.has(name), `report.${name} had rows`);
  }
});
