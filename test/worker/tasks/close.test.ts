// Closing and finishing, killed wherever it can be and run by several: one statement a day, told of once, the same bytes.
import t, { type Test } from "tap";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { verify } from "../../../src/commands/statements.ts";
import {
  daySeconds,
  keepBusinessDays,
  listStatements,
  manyDistributors,
  noonOffset,
  openBooks,
  setZone,
  startWorker,
  zoneOf,
  type Books,
} from "../../support/business-days.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { runProgram } from "../../support/program.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

type World = { service: Running; books: Books; parties: string[]; end(party: string): Promise<void> };

// Distributors with three entries on a day that lasts until its `end` is asked for.
async function startWorld(t: Test, count: number, options = {}): Promise<World> {
  const { tenant, parties } = manyDistributors(count);
  const service = await startService(t, { tenants: [tenant] }, options);
  const offset = noonOffset();
  for (const party of parties) await setZone(service, party, zoneOf(offset));
  const codes = await openBooks(service, parties, 2);
  const by = service.as("ak_many");
  await Promise.all(
    parties.map(async (party) => {
      let redemption = "";
      for (const coupon of codes.get(party)!) {
        const { json } = await by.post("/v1/coupons/redeem", {
          request_id: newRequestId(),
          coupon,
          merchant: "mch_many",
          store: `shop of ${party}`,
        });
        redemption = json.redemption;
      }
      await by.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption });
    }),
  );
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  return { service, books, parties, end: (party) => setZone(service, party, zoneOf(offset + daySeconds)) };
}

async function checkAll(t: Test, { service, parties }: World): Promise<void> {
  const statements = await listStatements(service);
  t.strictSame(statements.map(({ distributor }) => distributor).sort(), [...parties].sort(), "one statement each");
  t.ok(statements.every(({ is_ready, entries }) => is_ready && entries === 3));
  const told = await service.owner.rows(
    `select p.external_id as party, count(*)::int
     from core.event e
     join core.party p using (tenant_id, party_id)
     where event_type = 'reconciliation.ready'
     group by 1`,
  );
  t.strictSame(
    told.map(({ party, count }) => [party, count]).sort(),
    parties.map((party) => [party, 1]).sort(),
    "told of once",
  );
  const verdicts = await Array.fromAsync(verify(service.admin));
  t.strictSame(
    verdicts.flatMap(({ differences }) => differences),
    [],
    "the files, made again, have the same bytes",
  );
  t.equal(verdicts.length, parties.length);
  t.strictSame(await findBrokenInvariants(service.owner), []);
}

type Death = (database: Database, text: string, params?: readonly unknown[]) => Promise<unknown>;

// A database connection of a worker that dies at its nth statement, and how far it came.
function dieAt(database: Database, point: number, death: Death) {
  const lived = { statements: 0, isDead: false };
  const dying: Pick<Database, "rows" | "end"> = {
    end: () => Promise.resolve(),
    async rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
      if (lived.isDead) throw new Error("dead");
      lived.statements += 1;
      if (lived.statements < point) return database.rows<T>(text, params);
      lived.isDead = true;
      await death(database, text, params);
      throw new Error("killed");
    },
  };
  return { dying, lived };
}

async function closeAndDie({ books, end }: World, party: string, point: number, death: Death): Promise<boolean> {
  await end(party);
  const { dying, lived } = dieAt(books.worker, point, death);
  const closer = books.closerOn(dying);
  await closer
    .closeDays()
    .then(closer.finishStatements)
    .catch(() => {});
  // Another worker. (Ours shares its pool with the dead one, and the driver gives the next call the last words of a lost connection.)
  await waitUntil("another worker to finish the books", () =>
    books.close().then(
      () => true,
      () => false,
    ),
  );
  return lived.isDead;
}

t.test("killed before or after any of its statements", async (t) => {
  const world = await startWorld(t, 18);
  const ways: [string, Death][] = [
    ["before", () => Promise.resolve()],
    ["after", (database, text, params) => database.rows(text, params)],
  ];
  for (const [index, party] of world.parties.entries()) {
    const [when, death] = ways[index % 2]!;
    const point = Math.floor(index / 2) + 1;
    const isDead = await closeAndDie(world, party, point, death);
    t.equal(isDead, point <= 8, `${when} statement ${point}${isDead ? "" : ": there are only eight"}`);
  }
  await checkAll(t, world);
});

t.test("its backend ended in the middle of any of its statements", async (t) => {
  const world = await startWorld(t, 8);
  const login = connect(world.service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  const ended: string[] = [];
  for (const [index, party] of world.parties.entries()) {
    await closeAndDie(world, party, index + 1, async (database, text, params) => {
      // Held by somebody else, so that the statement is caught while it runs.
      const other = openSession(world.service.address, { name: "coupon test", role: "coupon_owner" });
      await other.run("begin; lock core.statement, core.posting, core.statement_line in access exclusive mode");
      let isOver = false;
      const running = database
        .rows(text, params)
        .catch(() => {})
        .finally(() => {
          isOver = true;
        });
      let killed: unknown[] = [];
      while (!isOver && killed.length === 0) {
        killed = await login.rows(
          `select pg_terminate_backend(pid)
           from pg_stat_activity
           where application_name = 'coupon test worker' and datname = current_database()
             and cardinality(pg_blocking_pids(pid)) > 0`,
        );
      }
      await other.run("rollback");
      await Promise.all([running, other.end()]);
      if (killed.length > 0) ended.push(/jobs\.(\w+)/.exec(text)![1]!);
    });
  }
  t.strictSame(ended, [
    "close_days",
    "list_due_statements",
    "summarize_statement",
    "read_statement_page",
    "read_statement_page",
    "finish_statement",
    "list_due_statements",
  ]);
  await checkAll(t, world);
});

t.test("three workers at the same days at once", async (t) => {
  const world = await startWorld(t, 12);
  const others = Array.from({ length: 2 }, () =>
    connect(world.service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 }),
  );
  t.teardown(() => Promise.all(others.map((other) => other.end())));
  for (const party of world.parties) await world.end(party);
  const closers = [world.books.closer, ...others.map((other) => world.books.closerOn(other))];
  await Promise.all(closers.map((closer) => closer.closeDays()));
  await Promise.all(closers.flatMap((closer) => [closer.finishStatements(), closer.finishStatements()]));
  t.strictSame(world.books.errors, []);
  await checkAll(t, world);
});

t.test("worker processes killed with -9 in the middle of it", async (t) => {
  const world = await startWorld(t, 40);
  for (const party of world.parties) await world.end(party);
  const count = async (isCounted: (row: { is_ready: boolean }) => boolean) =>
    (await listStatements(world.service)).filter(isCounted).length;
  const reached = [
    async () => (await count(() => true)) > 0,
    async () => (await count(({ is_ready }) => is_ready)) > 5,
  ];
  const progress: number[] = [];
  for (const isReached of reached) {
    const worker = startWorker(t, world.service);
    await waitUntil("progress", isReached);
    await worker.kill();
    progress.push(await count(({ is_ready }) => is_ready));
  }
  t.comment(`finished when killed: ${progress.join(", ")} of 40`);
  const [last, beside] = [startWorker(t, world.service), startWorker(t, world.service)];
  await waitUntil("40 ready statements", async () => (await count(({ is_ready }) => is_ready)) === 40);
  await Promise.all([last.kill(), beside.kill()]);
  await world.books.sequence();
  await checkAll(t, world);
});

t.test("who posts entries and who closes days is one at a time", async (t) => {
  const world = await startWorld(t, 2);
  const { service, books, parties } = world;
  const other = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => other.end());
  const closeDays = async (database: Pick<Database, "rows">) =>
    (await database.rows<{ closed: number }>("select jobs.close_days(50) as closed"))[0]!.closed;

  await other.run("begin");
  await other.rows("select jobs.sequence_events(1000)");
  await world.end(parties[0]!);
  t.equal(await closeDays(books.worker), 0, "no day closes while a step of the sequencer is under way");
  await other.run("commit");
  await other.run("begin");
  t.equal(await closeDays(other), 1);
  const [step] = await books.worker.rows("select sequenced, is_drained from jobs.sequence_events(1000)");
  t.match(step, { sequenced: 0, is_drained: false }, "nothing is posted while days are closed");
  await other.run("commit");
  await world.end(parties[1]!);
  await books.close();
  await checkAll(t, world);
});

t.test("statements -- verify finds what was changed behind the triggers' back, and says where", async (t) => {
  const world = await startWorld(t, 6, { mayBreakInvariants: true });
  const { service, books, parties } = world;
  for (const party of parties) await world.end(party);
  await books.close();
  t.match(await runProgram(service, "statements", ["verify"]), {
    code: 0,
    stdout: "6 statements checked, no differences\n",
    stderr: "",
  });
  t.match(await runProgram(service, "statements", []), { code: 1, stdout: "", stderr: /^usage: / });

  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  await superuser.run("set session_replication_role = replica");
  const mine = (column: string, party: string) =>
    `${column} = (select party_id from core.party where external_id = '${party}')`;
  await superuser.run(`update core.ledger_entry set amount_minor = amount_minor + 1 where entry_type = 'REDEMPTION' and ${mine("distributor_id", parties[0]!)}
    and entry_id in (select redemption_id from core.redemption where status = 'REDEEMED')`);
  await superuser.run(
    `update core.redemption set store = 'another' where store = 'shop of ${parties[1]}' and status = 'REDEEMED'`,
  );
  await superuser.run(`delete from core.posting where number = 3 and ${mine("distributor_id", parties[2]!)}`);
  await superuser.run(`update core.statement_line set reversal_count = 2 where ${mine("distributor_id", parties[3]!)}`);
  await superuser.run(
    `update core.statement set summary_sha256 = repeat('0', 64) where ${mine("distributor_id", parties[4]!)}`,
  );
  const { code, stdout } = await runProgram(service, "statements", ["verify"]);
  t.equal(code, 1);
  const lines = stdout.trimEnd().split("\n");
  t.equal(lines.pop(), "6 statements checked, 5 differ");
  const said = (party: string) =>
    lines
      .filter((line) => line.includes(` ${party} `))
      .map((line) => line.replace(/^.*?: /, "").replace(/[0-9a-f]{64}/g, "#"));
  t.strictSame(said(parties[0]!), [
    "detail.csv: sha256 is #, was # when it was finished",
    "summary.csv has 2/1470 redeemed and 1/-735 reversed (count/minor units) for mch_many tpl_one EUR, the ledger has 2/1471 redeemed and 1/-735 reversed (count/minor units)",
  ]);
  t.match(said(parties[1]!), [/^detail\.csv: bytes is \d+, was \d+/, /^detail\.csv: sha256 is/]);
  t.match(said(parties[2]!), [
    /^detail\.csv: rows is 2, was 3/,
    /^detail\.csv: bytes is/,
    /^detail\.csv: sha256 is/,
    /^summary\.csv has 2\/1470 .* the ledger has 2\/1470 redeemed and 0\/0 reversed/,
  ]);
  t.match(said(parties[3]!), [/^summary\.csv: sha256 is/, /^summary\.csv has .* 2\/-735 reversed/]);
  t.match(said(parties[4]!), [/^summary\.csv: sha256 is/]);
  t.strictSame(said(parties[5]!), []);
});
