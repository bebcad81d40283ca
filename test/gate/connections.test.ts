// Which errors of the database may be gone later, which ones a statement caused, and which lane a statement uses.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import type { Database } from "../../src/database/types.ts";
import { isCausedByStatement, isDiskFull, openConnections, type LaneName } from "../../src/gate/connections.ts";
import { createGate, type StatementFile } from "../../src/gate/gate.ts";
import { openScratchDatabase } from "../support/database.ts";
import { stopClock } from "../support/stop-clock.ts";

const log = createLog("silent");
const soon = () => performance.now() + 60_000;
const never = () => new Promise<never>(() => {});
const databaseOf = (rows: () => Promise<never>) => ({ rows, end: async () => {} }) as Database;
const place = { lane: "quick", tenantId: null } as const;

t.test(
  "A database error gets a 503 if it may be temporary, and fails the whole group if no call caused it",
  async (t) => {
    const session = await openScratchDatabase(t);
    const raise = (state: string) => session.run(`do $$ begin raise 'no' using errcode = '${state}'; end $$`);
    const coded = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));
    const judge = async (fail: () => Promise<never>) => {
      const connections = openConnections({
        connect: () => databaseOf(fail),
        log,
        maxWaiting: 10,
        hungAfterMs: 60_000,
      });
      const error = await connections.rows(place, soon(), "select", []).catch((thrown: unknown) => thrown);
      return [error instanceof Unavailable, isCausedByStatement(error), isDiskFull(error)];
    };
    const temporary = ["08000", "08P01", "25006", "53000", "53200", "53300", "57P01", "57P05"];
    const temporaryByStatement = ["40001", "40P01", "55P03", "57014"];
    const bugs = ["22012", "23505", "25001", "55000", "57000", "P0001", "XX000"];
    const table = new Map<string, [mayWorkLater: boolean, isCausedByStatement: boolean, isDiskFull: boolean]>([
      ["53100", [true, false, true]],
      ["EACCES", [false, false, false]],
    ]);
    for (const state of [...temporary, "ECONNREFUSED", "CONNECTION_CLOSED"]) table.set(state, [true, false, false]);
    for (const state of temporaryByStatement) table.set(state, [true, true, false]);
    for (const state of bugs) table.set(state, [false, true, false]);
    const judged = new Map<string, boolean[]>();
    for (const state of table.keys())
      judged.set(state, await judge(async () => await (state.length === 5 ? (raise(state) as never) : coded(state))));
    const noCell = () => session.run("do $$ begin raise 'PL/Proxy function f(0): no' using errcode = 'XX000'; end $$");
    judged.set("XX000 of a router", await judge(async () => (await noCell()) as never));
    table.set("XX000 of a router", [true, false, false]);
    t.strictSame(judged, table);
  },
);

t.test("Each lane shows its own load", async (t) => {
  const connections = openConnections({ connect: () => databaseOf(never), log, maxWaiting: 100, hungAfterMs: 60_000 });
  const started: Record<LaneName, number> = { quick: 9, lookup: 2, long: 1, patient: 5, bulk: 4 };
  for (const [lane, count] of Object.entries(started) as [LaneName, number][])
    for (let number = 0; number < count; number += 1)
      connections.rows({ lane, tenantId: 7 }, soon(), "select", []).catch(() => {});
  t.strictSame(connections.load(), {
    quick: { busy: 6, waiting: 3, width: 10 },
    lookup: { busy: 1, waiting: 1, width: 2 },
    long: { busy: 1, waiting: 0, width: 3 },
    patient: { busy: 4, waiting: 1, width: 6 },
    bulk: { busy: 2, waiting: 2, width: 3 },
  });
  connections.reconnect();
});

t.test("Access keys that nobody has seen queue apart, and only 250 of them wait", async (t) => {
  const gate = createGate({ connect: () => databaseOf(never), log });
  const find = (isSeen: boolean) => gate.findCredential("ak_a", soon(), isSeen).catch(({ message }: Error) => message);
  const lookups = Array.from({ length: 253 }, () => find(false));
  t.equal(await lookups.at(-1), "too many requests wait");
  for (let number = 0; number < 3; number += 1) void find(true);
  const { quick, lookup } = gate.load()[0]!.lanes;
  t.strictSame(
    [quick, lookup],
    [
      { busy: 3, waiting: 0, width: 10 },
      { busy: 2, waiting: 250, width: 2 },
    ],
  );
  gate.reconnect();
});

t.test("A page of a download uses its tenant's share of the bulk lane, and no connection of the calls", async (t) => {
  const gate = createGate({ connect: () => databaseOf(never), log });
  const file: StatementFile = {
    tenant_id: 7,
    distributor_id: 1,
    distributor: "pty_a",
    business_date: "2026-01-31",
    kind: "detail",
    rows: 1,
    bytes: 1,
    sha256: "",
  };
  for (let number = 0; number < 3; number += 1) gate.statementPage(file, 0, 1, soon()).catch(() => {});
  const { quick, long, patient, bulk } = gate.load()[0]!.lanes;
  t.strictSame([quick!.busy, long!.busy, patient!.busy], [0, 0, 0]);
  t.strictSame(bulk, { busy: 2, waiting: 1, width: 3 });
  gate.reconnect();
});

t.test("Connections on which a statement runs for 4.5 s are given up, and new ones are opened", async (t) => {
  const clock = stopClock(t, { hasTimers: true });
  let opened = 0;
  const connect = () => {
    opened += 1;
    return databaseOf(never);
  };
  const gate = createGate({ connect, log });
  const finding = gate.findCredential("ak_a", soon(), true).catch((error: unknown) => error instanceof Unavailable);
  await new Promise(setImmediate);
  clock.pass(4_499);
  const before = opened;
  clock.pass(1);
  t.strictSame([before, opened], [1, 2]);
  gate.reconnect();
  t.equal(await finding, true, "the statement gets its 503");
});
