// How long a commit takes: until the log is on the disk, and on a synchronous standby. Measured once a second while
// groups run. A statement that writes to the log is sent twice at once on one connection, and the server begins the
// second when the first has committed. So the difference of their times is a commit, without the network and node.
//
// The shortest of the last samples counts, because a busy machine only makes samples longer.
import type { Connections } from "./connections.ts";

export type CommitTime = {
  /** Whether a commit takes so long that another group should run meanwhile. False until the first sample is there. */
  isSlow(): boolean;
};
type Parts = { connections: Pick<Connections, "twice">; everyMs?: number };

const slowMs = 1;
const keptSamples = 5;
const withinMs = 1_000;
const pauseAfterFailureMs = 10_000;
// In the order of its columns. The message is not for anyone: it makes the transaction one that is flushed.
const statement = `select pg_logical_emit_message(true, 'coupon', '')::text as message,
  extract(epoch from clock_timestamp())::float8 * 1000 as at`;

export function createCommitTime({ connections, everyMs = 1_000 }: Parts): CommitTime {
  const samples: number[] = [];
  let isDueAt = 0;

  async function measure(): Promise<void> {
    const place = { lane: "quick", tenantId: null } as const;
    const sent = connections.twice<{ at: number }>(place, performance.now() + withinMs, statement);
    const [first, second] = await sent;
    samples.push(second[0]!.at - first[0]!.at);
    if (samples.length > keptSamples) samples.shift();
  }

  return {
    isSlow() {
      if (performance.now() >= isDueAt) {
        isDueAt = performance.now() + everyMs;
        // Calls show what is wrong with the database. A sample that failed may run on, for example while a synchronous
        // standby is away, and takes a connection.
        measure().catch(() => (isDueAt += pauseAfterFailureMs));
      }
      return samples.length > 0 && Math.min(...samples) >= slowMs;
    },
  };
}
