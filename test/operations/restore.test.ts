// Restores of backups as docs/restore.md describes them: from a dump to another server, and from a copy of the files
// and the archived log to a named point.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { fits } from "../support/fits.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { sendPlain, type Client } from "../support/client.ts";
import { copyServer, findTools, makeFolder, restoreTo, startArchiving, startSystemServer } from "../support/cluster.ts";
import { root } from "../support/copy.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { exitCodeOf, startProgram, untilPrinted } from "../support/program.ts";
import { document } from "../support/tenants.ts";
import { pullEvents } from "../support/pull-events.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { startTills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";
import { isLong } from "./size.ts";

const merchant = "mch_a";
const stock = isLong ? 20_000 : 4_000;
const redeem = (by: Client, coupon: string, request_id = newRequestId()) =>
  by.post("/v1/coupons/redeem", { request_id, coupon, merchant });

// Runs `act` while tills call the service, so that a backup contains running calls. `answered`: how many meanwhile.
async function underTills<T>(service: Running, codes: string[], act: () => Promise<T>) {
  const tills = startTills({ accessKey: "ak_a", merchant, codes, servers: [service.url], count: 4 });
  await tills.until(40);
  const before = tills.calls.length;
  const result = await act();
  const answered = tills.calls.slice(before).filter(({ status }) => status === 200).length;
  await tills.until(tills.calls.length + 20);
  await tills.stop();
  return { result, answered };
}

// Returns every event after the cursor, and the last cursor.
async function pull(by: Client, cursor?: string): Promise<{ ids: string[]; cursor: string }> {
  const { events, end } = await pullEvents<{ event_id: string }>(by, 1_000, cursor);
  return { ids: events.map(({ event_id }) => event_id), cursor: end };
}

// Checks what holds for every restored database.
async function checkRestored(t: Test, service: Running): Promise<void> {
  t.equal(await migrate(service.address), false, "the database is up to date");
  t.equal(await snapshotTables(service.address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
  await sequenceEvents(service.owner);
  t.strictSame(await findBrokenInvariants(service.owner), []);
  t.equal((await sendPlain(service.url, "GET", "/readyz")).status, 200);
  const work = startProgram(service, "work");
  t.teardown(() => work.kill("SIGKILL"));
  await untilPrinted(work, /working/);
  const created = await service
    .as("ak_a")
    .post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 10 });
  const batch = `/v1/batches/${created.json.batch.external_id}`;
  const isMinted = async () => (await service.as("ak_a").get(batch)).json.batch.status === "COMPLETED";
  await waitUntil("the coupons", isMinted);
  work.kill("SIGTERM");
  t.equal(await exitCodeOf(work), 0, "the worker starts, mints and stops");
}

const tools = findTools();
t.test(
  "a dump is restored into another server",
  { skip: tools === null && "pg_dump or its server is not installed" },
  async (t) => {
    const folder = makeFolder(t);
    const from = await startSystemServer(t, tools!, path.join(folder, "from"));
    await migrate(from.server);
    const service = await startService(t, document, { on: { address: from.server } });
    const a = service.as("ak_a");
    const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
    const [used, unused] = [codes.pop()!, codes.pop()!];
    const request = newRequestId();
    const first = await redeem(a, used, request);
    await sequenceEvents(service.owner);
    const before = await pull(a);
    const file = path.join(folder, "from/dump");
    const dump = await underTills(service, codes, () => from.start("pg_dump", "--format=custom", `--file=${file}`));
    t.ok(dump.answered > 0, "calls were answered meanwhile");

    const to = await startSystemServer(t, tools!, path.join(folder, "to"));
    // As text, because the server's user may not be able to read the project's folder.
    to.run(
      "psql",
      "--quiet",
      "--set=ON_ERROR_STOP=1",
      "--command",
      readFileSync(path.join(root, "db/roles.sql"), "utf8"),
    );
    to.run("pg_restore", "--exit-on-error", "--single-transaction", "--exclude-schema=graphile_worker", file);
    t.equal(await migrate(to.server), true, "it makes the schema of the job queue");
    const restored = await startService(t, null, { on: { address: to.server, masterKeyText: service.masterKeyText } });
    await checkRestored(t, restored);
    const b = restored.as("ak_a");
    fits(
      t,
      await redeem(b, used, request),
      { text: first.text, headers: { "idempotent-replayed": "true" } },
      "a retry gets the recorded answer",
    );
    fits(t, await redeem(b, used), { status: 409, json: { code: "COUPON_REDEEMED" } });
    t.equal((await redeem(b, unused)).status, 200);
    await sequenceEvents(restored.owner);
    const after = await pull(b, before.cursor);
    t.ok(after.ids.length > 0);
    t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids], "a reader continues at its cursor");
  },
);

t.test("a server is restored to a point before a mistake", async (t) => {
  const folder = makeFolder(t);
  const server = await startArchiving(t, folder);
  await migrate(server.address);
  const service = await startService(t, document, { on: { address: server.address } });
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
  const [kept, lost, unused] = [codes.pop()!, codes.pop()!, codes.pop()!];
  const { result: base, answered } = await underTills(service, codes, () => copyServer(server, folder));
  t.ok(answered > 0, "calls were answered meanwhile");
  const request = newRequestId();
  const first = await redeem(a, kept, request);
  await sequenceEvents(service.owner);
  const before = await pull(a);
  const dba = openSession(server.address, { name: "rehearsal" });
  await dba.rows("select pg_create_restore_point('before_the_mistake')");
  const mistake = await makeMistake(t, service, codes, lost, before.cursor);
  await archiveWal(dba);
  await dba.end();

  const second = await restoreTo(t, server, base, folder, "before_the_mistake");
  // As the documents say: a new master key first, then the old one.
  const rotated = `2:${randomBytes(32).toString("base64")},1:${service.masterKeyText}`;
  const restored = await startService(t, null, { on: { address: second.address, masterKeyText: rotated } });
  await restored.admin.rows("select admin.note_restore('rehearsal')");
  await checkRestored(t, restored);
  const b = restored.as("ak_a");
  fits(
    t,
    await redeem(b, kept, request),
    { text: first.text, headers: { "idempotent-replayed": "true" } },
    "an answer from before the point is kept",
  );
  t.equal((await redeem(b, unused)).status, 200, "codes from before the point are valid");
  await checkLost(t, restored, mistake, lost);

  await sequenceEvents(restored.owner);
  const after = await pull(b, before.cursor);
  t.ok(after.ids.length >= 2);
  t.strictSame((await pull(b, mistake.cursor)).ids, after.ids, "a cursor from the lost time skips no new event");
  t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids]);
  t.strictSame(await findBrokenInvariants(restored.owner), []);
});

// What happened after the restore point and is lost.
type Mistake = { request: string; cursor: string; printed: string[] };

// Makes a redemption, its event and cursor, a batch whose codes are printed, and a revoked credential.
async function makeMistake(
  t: Test,
  service: Running,
  codes: string[],
  coupon: string,
  cursor: string,
): Promise<Mistake> {
  const a = service.as("ak_a");
  const request = newRequestId();
  t.equal((await redeem(a, coupon, request)).status, 200);
  await underTills(service, codes, async () => {});
  await sequenceEvents(service.owner);
  const gone = await pull(a, cursor);
  t.ok(gone.ids.length > 20);
  const printed = await service.makeBatch(a, "tpl_fixed", 50);
  await service.admin.rows("select admin.revoke_credential('ak_a_second', 'leaked')");
  return { request, cursor: gone.cursor, printed: printed.codes };
}

async function checkLost(t: Test, restored: Running, { request, printed }: Mistake, coupon: string): Promise<void> {
  const b = restored.as("ak_a");
  fits(
    t,
    await redeem(b, printed[0]!),
    { status: 404, json: { code: "NOT_FOUND", details: { resource: "coupon" } } },
    "a code of a lost batch is unknown",
  );
  const again = await restored.makeBatch(b, "tpl_fixed", 50);
  t.ok(
    again.codes.every((code) => code.startsWith("2")),
    "no new code can equal a lost one: they begin with another character",
  );
  t.ok(printed.every((code) => code.startsWith("1")));
  const exported = await Array.fromAsync(exportCodes(restored.admin, restored.keys, again.id, true));
  t.equal(exported.flat().length, 50);
  const decided = await redeem(b, coupon, request);
  t.equal(decided.status, 200, "a request whose record is lost is decided again");
  t.notOk("idempotent-replayed" in decided.headers);
  t.equal(
    (await restored.as("ak_a_second").get("/v1/events")).status,
    200,
    "a credential that was revoked after the point works again, so it must be revoked again",
  );
}

async function archiveWal(dba: Session): Promise<void> {
  await dba.rows("select pg_switch_wal()");
  const [row] = await dba.rows<{ file: string }>("select pg_walfile_name(pg_current_wal_lsn()) as file");
  const isArchived = async (): Promise<boolean> => {
    const [archiver] = await dba.rows<{ last: string | null }>(
      "select last_archived_wal as last from pg_stat_archiver",
    );
    return archiver!.last !== null && archiver!.last >= previous(row!.file);
  };
  await waitUntil("the archived log", isArchived, { everyMs: 50 });
}

// The WAL file before this one, which is complete after the switch.
function previous(file: string): string {
  return (BigInt(`0x${file}`) - 1n).toString(16).toUpperCase().padStart(24, "0");
}
