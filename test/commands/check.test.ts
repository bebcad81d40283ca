// coupon check: prints the broken invariants, and stores the results, which the metrics of work show.
import { spawn } from "node:child_process";
import t from "tap";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, resultOf } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";

t.test("each invariant is checked now, and its result is stored", async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  // npm run check checks the code.
  const run = (...args: string[]) =>
    resultOf(
      spawn("bin/coupon", ["check", ...args], {
        cwd: root,
        env: { PATH: process.env["PATH"], ...environmentOf(world) },
      }),
    );
  const stored = async () => [
    ...(await world.admin.rows("select invariant, broken_rows::int as rows from rules.list_invariants()")),
  ];
  await world.owner.rows("delete from core.invariant_check");
  const names = (await stored()).map(({ invariant }) => invariant);
  const all = `${names.length} invariants checked, all hold\n`;
  t.strictSame(await run(), { code: 0, stdout: all, stderr: "" });
  t.strictSame(new Set((await stored()).map(({ rows }) => rows)), new Set([0]));

  const psql = await world.openPsql({ triggers: false });
  const [coupon] = await world.a.makeCoupons(1);
  await psql.run("update core.coupon set status = 'LOCKED'");
  const invariant = "coupon status matches redemptions";
  const broken = [{ invariant, rows: 1, example: `ten_a ${coupon!.id}` }];
  const json = await run("--json");
  t.strictSame([json.code, JSON.parse(json.stdout)], [1, { checked: names.length, broken }]);
  fits(t, await run(), { code: 1, stdout: new RegExp(`${invariant} +1 +ten_a cpn_[^]*checked, 1 broken`) });
  t.strictSame(
    (await stored()).filter(({ rows }) => rows !== 0),
    [{ invariant, rows: 1 }],
  );
});
