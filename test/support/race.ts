// Concurrent calls. A session holds a row until the calls are really blocked on it, so no test sleeps.
import { openSession } from "../../src/database/connect.ts";
import { hasGivenUp, mostTries, sendPatiently, type Reply } from "./client.ts";
import type { Scenario } from "./scenario.ts";
import { holdCoupon } from "./sessions.ts";
import { waitUntil } from "./wait-until.ts";

export type Call = () => Promise<Reply>;
type Place = Pick<Scenario, "address" | "owner">;
type Release = () => Promise<unknown>;

// Sends calls for a held coupon in this order, each when the one before is blocked, and then releases the coupon.
export async function sendInTurn(service: Place, couponId: string, calls: Call[]): Promise<Reply[]> {
  let replies: Reply[] = [];
  for (let tries = 0; tries < mostTries && replies.every((reply) => hasGivenUp(reply)); tries += 1) {
    const answers: Promise<Reply>[] = [];
    await releaseAfter(await holdCoupon(service, couponId), async () => {
      for (const call of calls) {
        answers.push(call());
        const blocked = untilBlocked(service, answers.length).then(() => true);
        const isEarly = !(await Promise.race([blocked, ...answers.map((answer) => answer.then(() => false))]));
        if (isEarly) return void (await Promise.all(answers));
      }
    });
    replies = await Promise.all(answers);
  }
  return replies;
}

// Sends all calls at once, and releases the row when four of them are blocked. The service lets at most six
// calls wait in the database (the patient lane); the others queue in front of it.
export async function sendTogether(service: Place, release: Release, calls: Call[]): Promise<Reply[]> {
  const answers = calls.map((call) => sendPatiently(call));
  await releaseAfter(release, () => untilBlocked(service, 4));
  return Promise.all(answers);
}

// What another session does with a row while a call waits for it: it holds the row, and changes it before it lets go.
// isFixed: a trigger refuses the change, so the session switches triggers off.
export type Holder = { hold: string; change?: string; isFixed?: boolean };

// Lets a moment pass while `act` waits for a row. The other session waits until `act` is blocked, then changes the row,
// reads the clock, and commits. So the moment is later than the beginning of every transaction and statement of `act`,
// and earlier than the end of its wait, however busy the machine is. $1 is the key of the row.
export async function passWhileWaiting<T>(
  service: Place,
  { hold, change, isFixed = false }: Holder,
  key: unknown,
  act: () => Promise<T>,
): Promise<{ answer: T; moment: string }> {
  const psql = openSession(service.address, { name: "psql" });
  try {
    await psql.run("begin");
    await psql.rows(hold, [key]);
    const answer = sendPatiently(act);
    await untilBlocked(service, 1);
    if (isFixed) await psql.run("set local session_replication_role = replica");
    if (change !== undefined) await psql.rows(change, [key]);
    const [row] = await psql.rows<{ moment: string }>("select clock_timestamp()::text as moment");
    await psql.run("commit");
    return { answer: await answer, moment: row!.moment };
  } finally {
    await psql.end();
  }
}

// Waits until PostgreSQL reports that many blocked sessions. It asks without a pause, because lock_timeout ends them.
export async function untilBlocked(service: Place, count: number): Promise<void> {
  const areBlocked = async () => {
    const [row] = await service.owner.rows<{ waiting: number }>(
      `select count(*)::int as waiting from pg_stat_activity a
       where a.datname = current_database() and cardinality(pg_blocking_pids(a.pid)) > 0`,
    );
    return row!.waiting >= count;
  };
  await waitUntil(`${count} blocked sessions`, areBlocked, { everyMs: 0, withinMs: 20_000 });
}

// Arranges what must be ready before a moment that is `seconds` away. A busy machine gets more time in another try.
export async function arrangeBefore<T>(
  service: Place,
  arrange: (moment: string, seconds: number) => Promise<T>,
  undo: (late: T) => Promise<unknown> = async () => {},
): Promise<T & { moment: string }> {
  const tries = [1, 5, 25];
  for (const seconds of tries) {
    const moment = new Date(Date.now() + seconds * 1_000).toISOString();
    try {
      const arranged = await arrange(moment, seconds);
      const [row] = await service.owner.rows<{ is_early: boolean }>(
        "select clock_timestamp() < $1::text::timestamptz as is_early",
        [moment],
      );
      if (row!.is_early) return { ...arranged, moment };
      await undo(arranged);
    } catch (error) {
      if (seconds === tries.at(-1)) throw error;
    }
  }
  throw new Error(`not ready within ${tries.at(-1)} s`);
}

// Waits until the database's clock has passed the moment.
export async function untilPast(service: Place, moment: string): Promise<void> {
  await service.owner.rows("select pg_sleep_until($1::text::timestamptz)", [moment]);
}

async function releaseAfter(release: Release, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } finally {
    await release();
  }
}

// Counts the outcomes: { "200": 1, COUPON_REDEEMED: 99 }.
export function countOutcomes(answers: Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, json } of answers) {
    const outcome = status === 200 ? "200" : (json.code as string);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}
