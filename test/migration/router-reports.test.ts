// The reports of a router over two cells that both own rows. Skipped where no PostgreSQL has PL/Proxy.
import t from "tap";
import { addReports } from "../../src/commands/router-database.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { migrateRouter } from "../../src/migration/migrate-router.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { addCells } from "../support/route.ts";
import { findRouterBinaries, howToInstall } from "../support/router.ts";
import { startTwoCells, type TwoCells } from "../support/two-cells.ts";

const skip = findRouterBinaries() === undefined && howToInstall;

let cells: TwoCells;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let reports: Database;
const log: string[] = [];
const migrate = () => migrateRouter(cells.router, (line) => void log.push(line));
if (!skip)
  t.before(async () => {
    cells = await startTwoCells(t);
    const [one, two] = cells.worlds;
    proxy = await startProxy(two.address);
    t.teardown(() => proxy.stop());
    await addCells(cells.router, [one.address, two.address]);
    reports = connect(cells.router, { name: "coupon test", role: "coupon_report", max: 1 });
    t.teardown(() => reports.end());
    for (const { till, coupons } of [
      { till: one.a.till, coupons: await one.a.makeCoupons(3) },
      { till: two.b.till, coupons: await two.b.makeCoupons(2) },
    ])
      for (const coupon of coupons) await till.ok.redeem(coupon);
    for (const { steps } of cells.worlds) {
      await steps.sequence();
      await steps.close();
    }
  });

const countViews = async () =>
  (await cells.worlds[0].owner.rows("select from pg_views where schemaname = 'report'")).length;

t.test("There are no reports until each cell has a login for them", { skip }, async (t) => {
  const [one, two] = cells.worlds;
  const views = "select from pg_class where relnamespace = 'report'::regnamespace";
  await addReports(cells.router, 1, { user: "postgres", ...one.address });
  await migrate();
  t.match(log.splice(0).at(-1), "no reports: cell 2 was added without CELL_REPORT_URL");
  t.strictSame([...(await reports.rows(views))], []);
  await t.rejects(addReports(cells.router, 2, { user: "postgres", ...one.address }), {
    message: "cell 2: the server of CELL_REPORT_URL is cell 1",
  });
  await addReports(cells.router, 2, { user: "postgres", ...two.address, host: "127.0.0.1", port: proxy.port });
  await migrate();
  t.match(log.splice(0).at(-1), `reports over 2 cells: ${await countViews()} views`);
  t.equal((await reports.rows(views)).length, await countViews());
});

t.test("Each view has the rows of both cells, and its comments", { skip }, async (t) => {
  const owned = new Set<string>();
  const views = await cells.worlds[0].owner.rows<{ view: string }>(
    "select viewname as view from pg_views where schemaname = 'report' order by 1",
  );
  const comments = `select a.attname, col_description(a.attrelid, a.attnum), obj_description(a.attrelid, 'pg_class')
    from pg_attribute a
    where a.attrelid = $1::text::regclass and a.attnum > 0 and a.attname <> 'cell' order by a.attnum`;
  for (const { view } of views) {
    for (const [index, { owner }] of cells.worlds.entries()) {
      const expected = await owner.rows<{ row: string }>(
        `select to_jsonb(v)::text as row from report.${view} v order by 1`,
      );
      const found = await reports.rows<{ row: string }>(
        `select (to_jsonb(v) - 'cell')::text as row from report.${view} v where cell = $1 order by 1`,
        [index + 1],
      );
      t.strictSame(
        found.map(({ row }) => row),
        expected.map(({ row }) => row),
        `${view} of cell ${index + 1}`,
      );
      if (found.length > 0) owned.add(`${view} ${index + 1}`);
    }
    const place = [`report.${view}`];
    t.strictSame([...(await reports.rows(comments, place))], [...(await cells.worlds[0].owner.rows(comments, place))]);
  }
  for (const view of ["tenant", "party", "merchant", "template", "batch", "coupon", "redemption", "daily"])
    t.strictSame([owned.has(`${view} 1`), owned.has(`${view} 2`)], [true, true], `both cells have rows in ${view}`);
  const sums = await reports.rows(
    "select cell, tenant, sum(redemption_count)::int as count from report.daily group by 1, 2 order by 1",
  );
  fits(t, sums, [
    { cell: 1, tenant: "ten_a", count: 3 },
    { cell: 2, tenant: "ten_b", count: 2 },
  ]);
});

const readPlan = async (query: string) =>
  (await reports.rows<{ line: string }>(`explain (verbose, costs off) ${query}`))
    .map((row) => Object.values(row)[0])
    .join("\n");

t.test("A question about one tenant reaches one cell only, with its other filters", { skip }, async (t) => {
  const daily =
    "select cell, redemption_count from report.daily where tenant = 'ten_a' and business_date >= '2020-01-01'";
  const plan = await readPlan(daily);
  t.strictSame(plan.match(/Foreign Scan/g)?.length, 1);
  t.match(plan, /Remote SQL: .*'2020-01-01'.*'ten_a'|Remote SQL: .*'ten_a'.*'2020-01-01'/);
  proxy.set({ cutsConnect: () => true });
  proxy.cutAll();
  t.strictSame([...(await reports.rows(daily))], [{ cell: 1, redemption_count: 3 }], "the other cell is down");
  await t.rejects(reports.rows("select * from report.daily"), { message: /report_2/ }, "no sum lacks a cell");
  await t.rejects(reports.rows("select * from report.daily where tenant = 'ten_b'"), { message: /report_2/ });
  proxy.set({});

  // No constraint knows it yet.
  await cells.worlds[1].apply({
    tenants: [
      { id: "ten_late", name: "late", variant: "A", parties: [], merchants: [], templates: [], credentials: [] },
    ],
  });
  t.strictSame(
    [...(await reports.rows("select tenant, cell from report.tenant where tenant = 'ten_late'"))],
    [{ tenant: "ten_late", cell: 2 }],
  );
});

t.test("Rows of a tenant that lives elsewhere now are left out", { skip }, async (t) => {
  const { owner } = cells.worlds[1];
  await owner.rows("update core.tenant set home = 1 where external_id = 'ten_b'");
  for (const view of ["daily", "batch", "redemption", "tenant"])
    t.strictSame([...(await reports.rows(`select from report.${view} where tenant = 'ten_b'`))], [], view);
  t.equal((await owner.rows("select from report.daily where tenant = 'ten_b'")).length, 1, "they are still there");
  await owner.rows("update core.tenant set home = 2 where external_id = 'ten_b'");
});
