// When commits count as slow, and how the gate asks the database for that.
import t from "tap";
import { createCommitTime } from "../../src/gate/commit-time.ts";
import { openConnections, type Connections } from "../../src/gate/connections.ts";
import { createLog } from "../../src/common/log.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDatabase } from "../support/database.ts";
import { stopClock } from "../support/stop-clock.ts";

const settle = () => new Promise(setImmediate);

t.test("commits are slow if even the fastest of the last five took a millisecond", async (t) => {
  const clock = stopClock(t);
  const next: (number | Error)[] = [];
  let asked = 0;
  const twice: Connections["twice"] = async (_place, _deadline, _text, parameters) => {
    asked += 1;
    t.strictSame(parameters, [2], "in this cell");
    const ms = next.shift()!;
    if (ms instanceof Error) throw ms;
    return [[{ at: 5 }], [{ at: 5 + ms }]] as never;
  };
  const { isSlow } = createCommitTime({ cell: 2, connections: { twice } });
  let pause = 1_000;
  const measure = async (ms: number | Error): Promise<boolean> => {
    next.push(ms);
    clock.pass(pause);
    pause = ms instanceof Error ? 11_000 : 1_000;
    isSlow();
    await settle();
    return isSlow();
  };
  t.equal(await measure(new Error("no answer")), false, "nothing is known");
  t.equal(await measure(1), true);
  t.equal(await measure(0.9), false);
  for (let number = 0; number < 4; number += 1) t.equal(await measure(3), false);
  t.equal(await measure(new Error("no answer")), false);
  t.equal(await measure(3), true, "the short one is no longer among the last five");
  clock.pass(999);
  isSlow();
  t.equal(asked, 9, "once a second");
  clock.pass(1);
  await measure(new Error("no answer"));
  clock.pass(10_999);
  isSlow();
  t.equal(asked, 10, "after a failure, ten seconds later");
});

t.test("a commit is measured on one connection, and writes to the log", async (t) => {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const database = connect(address, { name: "coupon test commits", max: 2 });
  t.teardown(() => database.end());
  const sent: { text: string; pipe: object | undefined; rows: Promise<unknown[]> }[] = [];
  const rows: Database["rows"] = (text, params, pipe) => {
    const answer = database.rows<never>(text, params, pipe);
    sent.push({ text, pipe, rows: answer });
    return answer;
  };
  const log = createLog("silent");
  const connections = openConnections({
    connect: () => ({ rows, end: async () => {} }),
    log,
    maxWaiting: 10,
    hungAfterMs: 60_000,
  });
  const before = await database.rows<{ at: string }>("select pg_current_wal_flush_lsn()::text as at");
  t.equal(createCommitTime({ cell: null, connections }).isSlow(), false);
  const [first, second] = await Promise.all(sent.map(({ rows }) => rows as Promise<{ at: number }[]>));
  t.equal(sent.length, 2);
  t.equal(sent[0]!.pipe, sent[1]!.pipe);
  t.ok(first![0]!.at < second![0]!.at);
  const [after] = await database.rows<{ more: boolean }>(
    "select pg_current_wal_flush_lsn() > $1::text::pg_lsn as more",
    [before[0]!.at],
  );
  t.equal(after!.more, true);
});
