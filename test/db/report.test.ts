// coupon_report and coupon_admin read every view of report while it has rows. A view calls functions as its reader.
// Each read has a new session, because a session does not look up again what another role has used in it.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { states, type State } from "./api/states.ts";
import { arrange, setUpVariant } from "../support/arrange.ts";
import { startService } from "../support/service.ts";

t.test("Both reading roles can read every view of report while it has rows", async (t) => {
  const service = await startService(t);
  const all = Object.keys(states) as State[];
  await arrange(service, await setUpVariant(service, "A"), all, 1);
  await arrange(service, await setUpVariant(service, "B"), all, 1);
  await service.owner.rows("select jobs.sequence_events(1000)");
  const views = await service.owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'report'::regnamespace and c.relkind = 'v' order by 1`,
  );
  // Readers lack usage on our types, so their own expressions over such a column would find no operators.
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
