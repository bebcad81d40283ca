// How long a commit takes: until the log is on the disk, and on a synchronous standby. Measured once a second while
// groups run. gate.mark_commit, which writes to the log, is sent twice at once on one connection, and the server begins
// the second when the first has committed. So the difference of their times is a commit, without the network and node.
//
// Behind a router, the cell tells the times. The way between router and cell counts too: meanwhile the cell is as idle
// as during a commit, unless another group runs.
//
// The shortest of the last samples counts, because a busy machine only makes samples longer.
import type { Connections } from "./connections.ts";

export type CommitTime = {
  /** Whether a commit takes so long that another group should run meanwhile. False until the first sample is there. */
  isSlow(): boolean;
};
type Parts = { cell: number | null; connections: Pick<Connections, "twice">; everyMs?: number };

const slowMs = 1;
const keptSamples = 5;
const withinMs = 1_000;
const pauseAfterFailureMs = 10_000;

export function createCommitTime({ cell, connections, everyMs = 1_000 }: Parts): CommitTime {
  const samples: number[] = [];
  let isDueAt = 0;

  async function measure(): Promise<void> {
    const place = { lane: "quick", tenantId: null } as const;
    const deadline = performance.now() + withinMs;
    const [first, second] = await connections.twice<{ at: number }>(
      place,
      deadline,
      "select gate.mark_commit($1) as at",
      [cell],
    );
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
