// A rolling upgrade while tills are at work: the next version's migrate, then its programs beside the old ones, then the old ones go.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { sendPlain } from "../support/client.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { makeNextVersion } from "../support/next-version.ts";
import { exitCodeOf, startProgramIn, untilPrinted } from "../support/program.ts";
import { newRequestId, startService } from "../support/service.ts";
import { awayMs, startTills } from "../support/tills.ts";
import { isLong } from "./size.ts";

const [minted, stock, calls] = isLong ? [300_000, 60_000, 3_000] : [100_000, 8_000, 300];

t.test(
  "the next version is migrated and rolled out under load: no call fails, no effect is lost or there twice",
  async (t) => {
    const service = await startService(t);
    const a = service.as("ak_a");
    const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
    const next = makeNextVersion();
    t.teardown(next.remove);
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
    const isReady = async (url: string) => (await sendPlain(url, "GET", "/readyz")).status === 200;

    const old = await serve(".");
    const oldWork = start(".", "work");
    await untilPrinted(oldWork, /working/);
    const early = await serve(next.folder);
    t.notOk(await isReady(early.url), "a program is not ready for a database that lacks its migrations");

    const tills = startTills({ accessKey: "ak_a", merchant: "mch_a", codes: [...codes], servers: [old.url] });
    t.teardown(() => tills.stop().catch(() => {}));
    await tills.until(200);
    const { json } = await a.post("/v1/batches", {
      request_id: newRequestId(),
      template: "tpl_fixed",
      total_count: minted,
    });
    const mintedCount = async () =>
      (await a.get(`/v1/batches/${json.batch.external_id}`)).json.batch.minted_count as number;
    while ((await mintedCount()) === 0) await tills.until(tills.calls.length + 10);

    // Somebody who reads for long, as a report does: alter table would wait for him, and all tills behind it.
    const report = openSession(service.address, { name: "coupon test report" });
    await report.run("begin; select count(*) from core.redemption");
    const migrating = start(next.folder, "migrate");
    const migrated = untilPrinted(migrating, /migrated: (\d+) migrations/);
    await Promise.race([untilPrinted(migrating, /another session holds a lock/), migrated]);
    const before = tills.calls.length;
    await tills.until(before + 200);
    t.ok(await isReady(old.url), "nothing has happened yet");
    await report.end();
    t.equal((await migrated)[1], String(next.migrations.length));
    t.equal(await exitCodeOf(migrating), 0);
    t.ok((await mintedCount()) < minted, "the mint was under way");

    await tills.until(tills.calls.length + calls);
    t.ok(await isReady(old.url), "the old program works on with the new database");
    t.ok(await isReady(early.url), "and the new one is ready now");
    const newWork = start(next.folder, "work");
    await untilPrinted(newWork, /working/);
    tills.servers.unshift(early.url);
    old.program.kill("SIGTERM");
    oldWork.kill("SIGTERM");
    t.strictSame([await exitCodeOf(old.program), await exitCodeOf(oldWork)], [0, 0]);
    await tills.until(tills.calls.length + calls);
    const goal = isLong ? minted : (await mintedCount()) + 1;
    while ((await mintedCount()) < goal) await tills.until(tills.calls.length + 10);
    await tills.stop();

    const failed = tills.calls.filter(({ status }) => status !== 200);
    t.strictSame(
      failed.filter(({ status, code }) => status !== 503 || code !== "UNAVAILABLE"),
      [],
      "what was not done was UNAVAILABLE",
    );
    t.ok(
      awayMs(tills.calls) < 1_000,
      `for under a second (${Math.round(awayMs(tills.calls))} ms, ${failed.length} of ${tills.calls.length} calls)`,
    );
    t.comment(`slowest of ${tills.calls.length} calls: ${Math.round(Math.max(...tills.calls.map(({ ms }) => ms)))} ms`);
    const [row] = await service.owner.rows<{ redeemed: number; twice: number }>(
      "select count(*)::int as redeemed, count(*)::int - count(distinct coupon_id)::int as twice from core.redemption where status = 'REDEEMED'",
    );
    t.strictSame({ ...row }, { redeemed: tills.used.length, twice: 0 });
    newWork.kill("SIGTERM");
    await exitCodeOf(newWork);
    t.strictSame(await findBrokenInvariants(service.owner), []);
    await t.rejects(migrate(service.address), { message: /newer than this checkout/ });
    t.match(
      await service.owner.rows(
        "select indisvalid from pg_index where indexrelid = 'core.redemption_by_channel'::regclass",
      ),
      [{ indisvalid: true }],
    );
  },
);
