// Backups that are restored: to another server from a dump, and to a named point from a copy and the archived log. What must hold
// afterwards is the README's "Backup and restore".
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { openSession } from "../../src/database/connect.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { sendPlain, type Client } from "../support/client.ts";
import { copyServer, findTools, makeFolder, restoreTo, startArchiving, startSystemServer } from "../support/cluster.ts";
import { root } from "../support/copy.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { exitCodeOf, startProgramIn, untilPrinted } from "../support/program.ts";
import { document } from "../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { startTills } from "../support/tills.ts";
import { isLong } from "./size.ts";

const merchant = "mch_a";
const stock = isLong ? 20_000 : 2_000;
const redeem = (by: Client, coupon: string, request_id = newRequestId()) =>
  by.post("/v1/coupons/redeem", { request_id, coupon, merchant });

// Under tills, so that a backup has calls under way in it.
async function underTills<T>(service: Running, codes: string[], act: () => Promise<T>): Promise<T> {
  const tills = startTills({ accessKey: "ak_a", merchant, codes, servers: [service.url], count: 4 });
  await tills.until(40);
  const result = await act();
  await tills.until(tills.calls.length + 20);
  await tills.stop();
  return result;
}

async function sequence(service: Running): Promise<void> {
  for (;;) {
    const [step] = await service.owner.rows<{ is_drained: boolean }>(
      "select is_drained from jobs.sequence_events(10000)",
    );
    if (step!.is_drained) return;
  }
}

// Every event behind a cursor, and the cursor at the end.
async function pull(by: Client, cursor?: string): Promise<{ ids: string[]; cursor: string }> {
  const ids: string[] = [];
  for (let next = cursor; ;) {
    const { status, text, json } = await by.get(`/v1/events?limit=1000${next === undefined ? "" : `&cursor=${next}`}`);
    if (status !== 200) throw new Error(text);
    ids.push(...json.events.map(({ event_id }: { event_id: string }) => event_id));
    if (json.events.length === 0) return { ids, cursor: json.next_cursor };
    next = json.next_cursor as string;
  }
}

// What any restored database has to be, whatever is in it.
async function checkRestored(t: Test, service: Running): Promise<void> {
  const said: string[] = [];
  await migrate(service.address, (line) => said.push(line));
  t.strictSame(said, ["database is up to date"]);
  t.equal(await snapshotTables(service.address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
  await sequence(service);
  t.strictSame(await findBrokenInvariants(service.owner), []);
  t.equal((await sendPlain(service.url, "GET", "/readyz")).status, 200);
  const work = startProgramIn(".", service, "work");
  t.teardown(() => work.kill("SIGKILL"));
  await untilPrinted(work, /working/);
  const created = await service
    .as("ak_a")
    .post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 10 });
  const batch = `/v1/batches/${created.json.batch.external_id}`;
  while ((await service.as("ak_a").get(batch)).json.batch.status !== "COMPLETED")
    await new Promise((resolve) => setTimeout(resolve, 50));
  work.kill("SIGTERM");
  t.equal(await exitCodeOf(work), 0, "the worker starts, mints and ends");
}

const tools = findTools();
t.test(
  "a dump, restored into another server",
  { skip: tools === null && "no pg_dump with a server of its version here" },
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
    await sequence(service);
    const before = await pull(a);
    const file = path.join(folder, "from/dump");
    await underTills(service, codes, async () => from.run("pg_dump", "--format=custom", `--file=${file}`));

    const to = await startSystemServer(t, tools!, path.join(folder, "to"));
    // Given as text: the server's user may not be able to enter the project.
    to.run(
      "psql",
      "--quiet",
      "--set=ON_ERROR_STOP=1",
      "--command",
      readFileSync(path.join(root, "db/roles.sql"), "utf8"),
    );
    to.run("pg_restore", "--exit-on-error", "--single-transaction", file);
    const restored = await startService(t, null, { on: { address: to.server, masterKeyText: service.masterKeyText } });
    await checkRestored(t, restored);
    const b = restored.as("ak_a");
    t.match(
      await redeem(b, used, request),
      { text: first.text, headers: { "idempotent-replayed": "true" } },
      "a retry gets its answer",
    );
    t.match(await redeem(b, used), { status: 409, json: { code: "COUPON_REDEEMED" } });
    t.equal((await redeem(b, unused)).status, 200);
    await sequence(restored);
    const after = await pull(b, before.cursor);
    t.ok(after.ids.length > 0);
    t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids], "a reader goes on where it was");
  },
);

t.test("a server, restored to a point before a mistake", async (t) => {
  const folder = makeFolder(t);
  const server = await startArchiving(t, folder);
  await migrate(server.address);
  const service = await startService(t, document, { on: { address: server.address } });
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", stock);
  const [kept, lost, unused] = [codes.pop()!, codes.pop()!, codes.pop()!];
  const base = await underTills(service, codes, () => copyServer(server, folder));
  const request = newRequestId();
  const first = await redeem(a, kept, request);
  await sequence(service);
  const before = await pull(a);
  const dba = openSession(server.address, { name: "rehearsal" });
  await dba.rows("select pg_create_restore_point('before_the_mistake')");

  // All of this is lost: a redemption, its event and cursor, a batch that was printed, a revoked credential.
  const lostRequest = newRequestId();
  t.equal((await redeem(a, lost, lostRequest)).status, 200);
  await underTills(service, codes, async () => {});
  await sequence(service);
  const gone = await pull(a, before.cursor);
  t.ok(gone.ids.length > 20);
  const printed = await service.makeBatch(a, "tpl_fixed", 50);
  await service.admin.rows("select admin.revoke_credential('ak_a_second', 'leaked')");
  await dba.rows("select pg_switch_wal()");
  const [{ file }] = (await dba.rows<{ file: string }>("select pg_walfile_name(pg_current_wal_lsn()) as file")) as [
    { file: string },
  ];
  for (;;) {
    const [row] = await dba.rows<{ last: string }>("select last_archived_wal as last from pg_stat_archiver");
    if (row!.last !== null && row!.last >= previous(file)) break;
    await dba.rows("select pg_sleep(0.05)");
  }
  await dba.end();

  const second = await restoreTo(t, server, base, folder, "before_the_mistake");
  // As the README tells: a new master key first, the old one behind it.
  const rotated = `2:${randomBytes(32).toString("base64")},1:${service.masterKeyText}`;
  const restored = await startService(t, null, { on: { address: second.address, masterKeyText: rotated } });
  const b = restored.as("ak_a");
  await restored.admin.rows("select admin.note_restore('rehearsal')");
  await checkRestored(t, restored);

  t.match(
    await redeem(b, kept, request),
    { text: first.text, headers: { "idempotent-replayed": "true" } },
    "what was before the point is there",
  );
  t.match(
    await redeem(b, printed.codes[0]!),
    { status: 404, json: { code: "NOT_FOUND", details: { resource: "coupon" } } },
    "a code of a lost batch is unknown",
  );
  const again = await restored.makeBatch(b, "tpl_fixed", 50);
  t.ok(
    again.codes.every((code) => code.startsWith("2")),
    "and no new code can be one of these: they begin with another character",
  );
  t.ok(printed.codes.every((code) => code.startsWith("1")));
  t.equal((await redeem(b, unused)).status, 200, "codes of before hold");
  const judged = await redeem(b, lost, lostRequest);
  t.equal(judged.status, 200, "a request whose record is lost is judged anew");
  t.notOk("idempotent-replayed" in judged.headers);
  t.equal(
    (await restored.as("ak_a_second").get("/v1/events")).status,
    200,
    "a credential that was revoked later is back: it has to be revoked again",
  );

  await sequence(restored);
  const after = await pull(b, before.cursor);
  t.ok(after.ids.length >= 2);
  t.strictSame((await pull(b, gone.cursor)).ids, after.ids, "a cursor of the lost time skips nothing of the new one");
  t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids]);
  t.strictSame(await findBrokenInvariants(restored.owner), []);
  t.equal((await Array.fromAsync(exportCodes(restored.admin, restored.keys, again.id, true))).flat().length, 50);
});

// The file of the log before this one: the one that was switched from is whole.
function previous(file: string): string {
  return (BigInt(`0x${file}`) - 1n).toString(16).toUpperCase().padStart(24, "0");
}
