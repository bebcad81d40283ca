// A rolling upgrade under load: the next version migrates, its programs start beside the old ones, and then the old
// ones stop.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { sendPlain, type Client } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { exitCodeOf, startProgramIn, untilPrinted } from "../support/program.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { awayMs, startTills, type Tills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";
import { isLong } from "./size.ts";

const [minted, stock, calls] = isLong ? [300_000, 60_000, 3_000] : [100_000, 8_000, 300];

t.test("the next version is rolled out under load: no call fails, no effect is lost or happens twice", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
  const next = makeNextVersion();
  t.teardown(next.remove);
  const { start, serve } = createStarter(t, service);

  const old = await serve(root);
  const oldWork = start(root, "work");
  await untilPrinted(oldWork, /working/);
  const early = await serve(next.folder);
  t.notOk(await isReady(early.url), "a program is not ready for a database that lacks its migrations");

  const tills = startTills({ accessKey: "ak_a", merchant: "mch_a", codes: [...codes], servers: [old.url] });
  t.teardown(() => tills.stop().catch(() => {}));
  await tills.until(200);
  const countMinted = await startMint(a);
  await waitUntil("the first coupons", async () => (await countMinted()) > 0);
  await migrateBehindReport(t, service, tills, start(next.folder, "migrate"), {
    migrations: next.migrations.length,
    isOldReady: () => isReady(old.url),
  });
  t.ok((await countMinted()) < minted, "the mint was running");

  await tills.until(tills.calls.length + calls);
  t.ok(await isReady(old.url), "the old program works with the new database");
  t.ok(await isReady(early.url), "and the new one is ready now");
  const newWork = start(next.folder, "work");
  await untilPrinted(newWork, /working/);
  tills.servers.unshift(early.url);
  old.program.kill("SIGTERM");
  oldWork.kill("SIGTERM");
  t.strictSame([await exitCodeOf(old.program), await exitCodeOf(oldWork)], [0, 0]);
  await tills.until(tills.calls.length + calls);
  const goal = isLong ? minted : (await countMinted()) + 1;
  await waitUntil(`${goal} coupons`, async () => (await countMinted()) >= goal);
  await tills.stop();

  checkCalls(t, tills);
  newWork.kill("SIGTERM");
  await exitCodeOf(newWork);
  await checkDatabase(t, service, tills);
});

const isReady = async (url: string): Promise<boolean> => (await sendPlain(url, "GET", "/readyz")).status === 200;

// Starts programs of a version's folder, and kills them at the end of the test.
function createStarter(t: Test, service: Running) {
  const start = (folder: string, name: string) => {
    const program = startProgramIn(folder, service, name);
    t.teardown(() => program.kill("SIGKILL"));
    return program;
  };
  const serve = async (folder: string) => {
    const program = start(folder, "serve");
    const [, url] = await untilPrinted(program, /"url":"([^"]+)"[^\n]*"serving"/);
    return { program, url: url! };
  };
  return { start, serve };
}

// Returns the function that counts the minted coupons.
async function startMint(by: Client): Promise<() => Promise<number>> {
  const { json } = await by.post("/v1/batches", {
    request_id: newRequestId(),
    template: "tpl_fixed",
    total_count: minted,
  });
  return async () => (await by.get(`/v1/batches/${json.batch.external_id}`)).json.batch.minted_count as number;
}

// A session reads for a long time, as a report does. A waiting `alter table` would block all tills behind it.
async function migrateBehindReport(
  t: Test,
  service: Running,
  tills: Tills,
  migrating: ReturnType<typeof startProgramIn>,
  { migrations, isOldReady }: { migrations: number; isOldReady: () => Promise<boolean> },
): Promise<void> {
  const report = openSession(service.address, { name: "coupon test report" });
  await report.run("begin; select count(*) from core.redemption");
  const migrated = untilPrinted(migrating, /migrated: (\d+) migrations/);
  await Promise.race([untilPrinted(migrating, /another session holds a lock/), migrated]);
  await tills.until(tills.calls.length + 200);
  t.ok(await isOldReady(), "nothing has changed yet");
  await report.end();
  t.equal((await migrated)[1], String(migrations));
  t.equal(await exitCodeOf(migrating), 0);
}

function checkCalls(t: Test, { calls: made }: Tills): void {
  const failed = made.filter(({ status }) => status !== 200);
  t.strictSame(
    failed.filter(({ status, code }) => status !== 503 || code !== "UNAVAILABLE"),
    [],
    "every failed call was UNAVAILABLE",
  );
  const away = awayMs(made);
  t.ok(away < 1_000, `for less than a second (${Math.round(away)} ms, ${failed.length} of ${made.length} calls)`);
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
  t.match(
    await service.owner.rows(
      "select indisvalid from pg_index where indexrelid = 'core.redemption_by_channel'::regclass",
    ),
    [{ indisvalid: true }],
  );
}
