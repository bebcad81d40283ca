// A rolling upgrade under load: the next version migrates, its programs start beside the old ones, and then the old
// ones stop.
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { environmentOf, exitCodeOf, launch, type Launched } from "../support/program.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { awayMs, startTills, type Tills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";

const minted = 500_000;
const [stock, calls] = [8_000, 300];

t.test("the next version is rolled out under load: no call fails, no effect is lost or happens twice", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
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
  const early = await startServe(next.folder);
  t.notOk(await isReady(early.url), "a program is not ready for a database that lacks its migrations");

  const machine = watchMachine(t, service);
  const tills = startTills({ accessKey: "ak_a", merchant: "mch_a", codes: [...codes], servers: [old.url] });
  t.teardown(() => tills.stop().catch(() => {}));
  await tills.until(200);
  const order = { request_id: newRequestId(), template: "tpl_fixed", total_count: minted };
  const { json } = await a.post("/v1/batches", order);
  const countMinted = async () =>
    (await a.get(`/v1/batches/${json.batch.external_id}`)).json.batch.minted_count as number;
  await waitUntil("the first coupons", async () => (await countMinted()) > 0);
  const count = await migrateBehindReport(service, tills, start(next.folder, "migrate"), old.url);
  t.equal(count, next.migrations.length);
  t.ok((await countMinted()) < minted, "the mint was running");

  await tills.until(tills.calls.length + calls);
  await untilReady("the old program to work with the new database", old.url);
  await untilReady("the new one to be ready too", early.url);
  const newWork = start(next.folder, "work");
  await newWork.untilPrinted(/working/);
  tills.servers.unshift(early.url);
  const stopped = await Promise.all([old.program.stop(), oldWork.stop()]);
  fits(t, stopped, [{ code: 0 }, { code: 0 }]);
  await tills.until(tills.calls.length + calls);
  const goal = (await countMinted()) + 1;
  await waitUntil(`${goal} coupons`, async () => (await countMinted()) >= goal);
  await tills.stop();

  checkCalls(t, tills, await machine.longestPauseMs());
  await newWork.stop();
  await checkDatabase(t, service, tills);
});

const isReady = async (url: string): Promise<boolean> => (await sendPlain(url, "GET", "/readyz")).status === 200;
// A program is not ready either while the database is slow.
const untilReady = (what: string, url: string) => waitUntil(what, () => isReady(url), { withinMs: 30_000 });

// A session reads for a long time, as a report does. A waiting `alter table` would block all tills behind it. Returns
// the number of migrations.
async function migrateBehindReport(
  service: Running,
  tills: Tills,
  migrating: Launched,
  oldUrl: string,
): Promise<number> {
  const report = openSession(service.address, { name: "coupon test report" });
  await report.run("begin; select count(*) from core.redemption");
  await migrating.untilPrinted(/another session holds a lock|migrated: /);
  await tills.until(tills.calls.length + 200);
  await untilReady("the old program, because nothing has changed yet", oldUrl);
  await report.end();
  const [, count] = await migrating.untilPrinted(/migrated: (\d+) migrations/);
  if ((await exitCodeOf(migrating.program)) !== 0) throw new Error(migrating.output());
  return Number(count);
}

// Asks the database for nothing, again and again, to know how long this machine kept it or this process from working.
function watchMachine(t: Test, { address }: Running) {
  const session = openSession(address, { name: "coupon test pulse" });
  let [longestMs, isOver] = [0, false];
  async function watch(): Promise<void> {
    for (let last = performance.now(); !isOver;) {
      await session.rows("select");
      await sleep(10);
      const now = performance.now();
      longestMs = Math.max(longestMs, now - last);
      last = now;
    }
  }
  const watching = watch();
  watching.catch(() => {});
  t.teardown(() => session.end());
  return {
    async longestPauseMs(): Promise<number> {
      isOver = true;
      await watching;
      return longestMs;
    },
  };
}

function checkCalls(t: Test, { calls: made }: Tills, pauseMs: number): void {
  const failed = made.filter(({ status }) => status !== 200);
  const others = failed.filter(({ status, code }) => status !== 503 || code !== "UNAVAILABLE");
  t.strictSame(others, [], "every failed call was UNAVAILABLE");
  const away = awayMs(made);
  const seen = `${Math.round(away)} ms, ${failed.length} of ${made.length} calls; machine: ${Math.round(pauseMs)} ms`;
  t.ok(away < 1_000 + pauseMs, `for less than a second beyond the longest pause of this machine (${seen})`);
  t.ok(failed.length < made.length / 4, "most calls succeed");
  t.comment(`slowest of ${made.length} calls: ${Math.round(Math.max(...made.map(({ ms }) => ms)))} ms`);
}

async function checkDatabase(t: Test, service: Running, { used }: Tills): Promise<void> {
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
