// Calls that meet: they are made to wait for a row that somebody holds, and only when they really wait is it let go.
import type { Reply } from "./client.ts";
import type { Running } from "./service.ts";
import { holdCoupon } from "./sessions.ts";

export type Call = () => Promise<Reply>;
type Release = () => Promise<unknown>;

// The calls come one after the other to a coupon that is held, each when the one before it waits; then it is let go.
export async function sendInTurn(service: Running, couponId: string, calls: Call[]): Promise<Reply[]> {
  const release = await holdCoupon(service, couponId);
  const answers: Promise<Reply>[] = [];
  await releaseAfter(release, async () => {
    for (const call of calls) {
      answers.push(call());
      await untilBlocked(service, answers.length);
    }
  });
  return Promise.all(answers);
}

// The calls come all at once, and it is let go when some of them wait: no more do at a time, the rest stand in line
// before the database.
export async function sendTogether(service: Running, release: Release, calls: Call[]): Promise<Reply[]> {
  const answers = calls.map((call) => call());
  await releaseAfter(release, () => untilBlocked(service, 4));
  return Promise.all(answers);
}

// Until so many sessions wait for a lock, as PostgreSQL sees it. Well before lock_timeout ends that.
export async function untilBlocked(service: Running, count: number): Promise<void> {
  const deadline = performance.now() + 1_500;
  for (;;) {
    const [row] = await service.owner.rows<{ waiting: number }>(
      `select count(*)::int as waiting from pg_stat_activity a
       where a.datname = current_database() and cardinality(pg_blocking_pids(a.pid)) > 0`,
    );
    if (row!.waiting >= count) return;
    if (performance.now() > deadline) throw new Error(`${row!.waiting} of ${count} sessions wait`);
  }
}

// Until the database's clock has passed a moment.
export async function untilPast(service: Running, moment: string): Promise<void> {
  await service.owner.rows("select pg_sleep_until($1::text::timestamptz)", [moment]);
}

async function releaseAfter(release: Release, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } finally {
    await release();
  }
}

// How often each outcome came: { "200": 1, COUPON_REDEEMED: 99 }.
export function countOutcomes(answers: Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, json } of answers) {
    const outcome = status === 200 ? "200" : (json.code as string);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}
