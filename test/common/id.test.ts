// SQL (in responses) and TypeScript (in files) write an ID in the same external form, and SQL reads it back.
import { randomUUID } from "node:crypto";
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { externalId } from "../../src/common/id.ts";
import { tenants } from "../support/tenants.ts";
import { startService } from "../support/service.ts";

// The first is the example of the TypeID specification.
const known = new Map([
  ["01890a5d-ac96-774b-bcce-b302099a8057", "01h455vb4pex5vsknk084sn02q"],
  ["00000000-0000-0000-0000-000000000000", "00000000000000000000000000"],
  ["ffffffff-ffff-ffff-ffff-ffffffffffff", "7zzzzzzzzzzzzzzzzzzzzzzzzz"],
]);

t.test("SQL and TypeScript write IDs alike, and SQL reads them back", async (t) => {
  const { owner, address } = await startService(t, { tenants: structuredClone(tenants) });
  const uuids = [...known.keys(), ...Array.from({ length: 500 }, () => randomUUID())];
  const rows = await owner.rows<{ id: string; back: string }>(
    `select x.id, rules.parse_id('red', x.id)::text as back
     from unnest($1::uuid[]) with ordinality u (uuid, place),
       lateral (select rules.format_id('red', u.uuid) as id offset 0) x
     order by u.place`,
    [uuids],
  );
  t.strictSame(
    rows.map(({ id }) => id),
    uuids.map((uuid) => externalId("red", uuid)),
  );
  t.strictSame(
    rows.map(({ back }) => back),
    uuids,
  );
  for (const [index, text] of [...known.values()].entries()) t.equal(rows[index]!.id, `red_${text}`);
  const old = openSession(address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => old.end());
  await old.run("set standard_conforming_strings = off");
  t.strictSame(
    [...(await old.rows("select rules.format_id('red', $1) as id", [uuids[0]]))],
    [{ id: rows[0]!.id }],
    "also with standard_conforming_strings off",
  );
});

t.test("The time of an ID is when it was made, also in an old transaction", async (t) => {
  const { address } = await startService(t, { tenants: structuredClone(tenants) });
  const session = openSession(address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => session.end());
  await session.run("begin; select pg_sleep(0.02)");
  const [row] = await session.rows<{ after: number; before: number }>(
    `select (m.ms - extract(epoch from now()) * 1000)::float as after,
            (extract(epoch from clock_timestamp()) * 1000 - m.ms)::float as before
     from (select ('x' || translate(left(rules.make_id()::text, 13), '-', ''))::bit(48)::bigint as ms offset 0) m`,
  );
  await session.run("rollback");
  t.ok(row!.after > 19 && row!.before > -1, JSON.stringify(row));
});
