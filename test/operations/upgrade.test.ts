// A rolling upgrade under load: the next version migrates, its programs start beside the old ones, and then the old
// ones stop.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { environmentOf, exitCodeOf, launch, type Launched } from "../support/program.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { startTills, type Tills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";

const minted = 500_000;
const [stock, calls] = [8_000, 300];

t.test("the next version is rolled out under load: no call fails, no effect is lost or happens twice", async (t) => {
  const service = await scenario(t);
  const a = service.as("ak_a");
  const coupons = await service.a.makeCoupons(stock);
  const next = makeNextVersion();
  t.teardown(next.remove);
  const start = (folder: string, name: string) => launch(t, name, { folder, env: environmentOf(service) });
  const startServe = async (folder: string) => {
    const program = start(folder, "serve");
    const [, url = ""] = await program.untilPrinted(/"url":"([^"]+)"[^\n]*"serving"/);
    return { program, url };
  };

  const old = await startServe(root);
  const oldWork = start(root, "work");
  await oldWork.untilPrinted(/working/);
  const early = start(next.folder, "serve");
  t.equal(await exitCodeOf(early.program), 1, "a program does not start on a database that lacks its migrations");
  t.match(early.output(), /^the database is .*older than this checkout.*npm run migrate/);

  const codes = coupons.map(({ code }) => code);
  const tills = startTills({ codes, servers: [old.url] });
  t.teardown(() => tills.stop().catch(() => {}));
  await tills.until(200);
  const { batch } = await a.ok.createBatch("tpl_fixed", minted);
  const countMinted = async () => (await a.get(`/v1/batches/${batch.external_id}`)).json.batch.minted_count as number;
  await waitUntil("the first coupons", async () => (await countMinted()) > 0);
  const count = await migrateBehindReport(t, service, tills, start(next.folder, "migrate"), old.url);
  t.equal(count, next.migrations.length);
  t.ok((await countMinted()) < minted, "the mint was running");

  await tills.until(tills.calls.length + calls);
  await untilReady("the old program to work with the new database", old.url);
  const fresh = await startServe(next.folder);
  await untilReady("the new one to be ready too", fresh.url);
  const newWork = start(next.folder, "work");
  await newWork.untilPrinted(/working/);
  tills.servers.unshift(fresh.url);
  const stopped = await Promise.all([old.program.stop(), oldWork.stop()]);
  fits(t, stopped, [{ code: 0 }, { code: 0 }]);
  await tills.until(tills.calls.length + calls);
  const goal = (await countMinted()) + 1;
  await waitUntil(`${goal} coupons`, async () => (await countMinted()) >= goal);
  await tills.stop();

  checkCalls(t, tills);
  await newWork.stop();
  await checkDatabase(t, service, tills);
});

const isReady = async (url: string): Promise<boolean> => (await sendPlain(url, "GET", "/readyz")).status === 200;
// A program is not ready either while the database is slow.
const untilReady = (what: string, url: string) => waitUntil(what, () => isReady(url), { withinMs: 30_000 });

// A session reads for a long time, as a report does. A waiting `alter table` would block all tills behind it. Returns
// the number of migrations.
async function migrateBehindReport(
  t: Test,
  service: Scenario,
  tills: Tills,
  migrating: Launched,
  oldUrl: string,
): Promise<number> {
  const report = openSession(service.address, { name: "coupon test report" });
  await report.run("begin; select count(*) from core.redemption");
  await migrating.untilPrinted(/another session holds a lock|migrated: /);
  const before = tills.calls.length;
  await tills.until(before + 200);
  const failed = tills.calls.slice(before).filter(({ status }) => status !== 200).length;
  t.ok(failed < 50, `most calls succeed behind the report: ${failed} of 200 failed`);
  await untilReady("the old program, because nothing has changed yet", oldUrl);
  await report.end();
  const [, count] = await migrating.untilPrinted(/migrated: (\d+) migrations/);
  if ((await exitCodeOf(migrating.program)) !== 0) throw new Error(migrating.output());
  return Number(count);
}

function checkCalls(t: Test, { calls: made }: Tills): void {
  const failed = made.filter(({ status }) => status !== 200);
  const others = failed.filter(({ status, code }) => status !== 503 || code !== "UNAVAILABLE");
  t.strictSame(others, [], "every failed call was UNAVAILABLE");
  t.ok(failed.length < made.length / 4, `most calls succeed: ${failed.length} of ${made.length} failed`);
}

async function checkDatabase(t: Test, service: Scenario, { used }: Tills): Promise<void> {
  const [row] = await service.owner.rows<{ redeemed: number; twice: number }>(
    `select count(*)::int as redeemed, count(*)::int - count(distinct coupon_id)::int as twice
     from core.redemption where status = 'REDEEMED'`,
  );
  t.strictSame({ ...row }, { redeemed: used.length, twice: 0 });
  t.strictSame(await findBrokenInvariants(service.owner), []);
  await t.rejects(migrate(service.address), { message: /newer than this checkout/ });
  const index = "select indisvalid from pg_index where indexrelid = 'core.redemption_by_channel'::regclass";
  fits(t, await service.owner.rows(index), [{ indisvalid: true }]);
}
