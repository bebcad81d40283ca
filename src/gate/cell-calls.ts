// What the gate has for each cell behind a router, or for the one database: connections, groups and queues, in which no
// call of another cell waits.
//
// A call first runs in the quick lane, in a group with other calls of its tenant, or alone in the long lane. SQL never
// waits for a lock there: a call that would have to wait is handed back. It then runs again, alone, in the patient
// lane, where it may wait.
import type { Database } from "../database/types.ts";
import type { Logger } from "../common/log.ts";
import { Unavailable } from "../common/unavailable.ts";
import { drawTails } from "../formats/id.ts";
import { answerColumns, toOutcome, type AnswerRow, type Call, type Outcome } from "./answer.ts";
import { createCellWatch } from "./cell-watch.ts";
import { createCommitTime } from "./commit-time.ts";
import { isCausedByStatement, isDiskFull, openConnections, type Connections, type Place } from "./connections.ts";
import { createDiskWatch } from "./disk-watch.ts";
import { createGroups } from "./groups.ts";
import { createHomeFinder } from "./home-finder.ts";
import type { LaneLoad } from "./lane.ts";

/**
 * For metrics. cell: null for the one database, or the router itself. isDiskFull: a call has failed because of that,
 * and no later one has shown that there is space.
 */
export type CellLoad = { cell: number | null; waiting: number; lanes: Record<string, LaneLoad>; isDiskFull: boolean };
export type Cell = {
  /** hasOwnTransaction: the call shares no transaction with others, so it joins no group and uses the long lane. */
  perform(tenantId: number, call: Call, deadline: number, hasOwnTransaction: boolean): Promise<Outcome>;
  /** A call that is never handed back. */
  performAtOnce(tenantId: number, call: Call, deadline: number): Promise<Outcome | null>;
  rows: Connections["rows"];
  /** Whether the disk was full a moment ago. */
  isDiskFull(): boolean;
  load(): CellLoad;
  /** Gives up all connections, because they are dead. Calls that use them are rejected at once. */
  reconnect(): void;
  end(): Promise<void>;
};
export type CellParts = {
  /** null: the one database, or the router itself. */
  cell: number | null;
  connect: () => Database;
  log: Logger;
  hungAfterMs: number;
  onGroup?: ((size: number) => void) | undefined;
  /** Where a tenant lives that the cell does not serve. */
  onHome: (tenantId: number, cell: number) => void;
};

const largestGroup = 64;
// For groups and for each lane. A tenant may have half.
const maxWaiting = 2_000;

type TenantPlace = Place & { tenantId: number };

export function openCell({ cell, connect, log, hungAfterMs, onGroup, onHome }: CellParts): Cell {
  const connections = openConnections({ connect, log, maxWaiting, hungAfterMs });
  const watch = cell === null ? null : createCellWatch({ cell, log });
  const finder = cell === null ? null : createHomeFinder({ connections, onHome });
  const disk = createDiskWatch({ isDiskFull, log });
  const groups = createGroups<Call, Outcome | null>({
    send: (tenantId, calls, deadline, isBehind) => sendGroup({ lane: "quick", tenantId, isBehind }, calls, deadline),
    isCausedByCall: isCausedByStatement,
    areCommitsSlow: createCommitTime({ cell, connections }).isSlow,
    largest: largestGroup,
    maxWaiting,
  });

  function rows<T>(place: Place, deadline: number, text: string, parameters: unknown[]): Promise<T[]> {
    const run = () => connections.rows<T>(place, deadline, text, parameters);
    return watch === null ? run() : watch.observe(run);
  }

  async function send(place: TenantPlace, calls: Call[], deadline: number): Promise<(Outcome | null)[]> {
    const text = `select ${answerColumns} from unnest(gate.perform_calls($1, $2::text::jsonb, $3, $4))`;
    const isPatient = place.lane === "patient";
    const parameters = [place.tenantId, JSON.stringify(calls), drawTails(calls.length), isPatient];
    const run = () => disk.observe(rows<AnswerRow>(place, deadline, text, parameters));
    const answers = await run().catch(async (error: unknown) => {
      if (!(await finder?.hasMoved(place.tenantId, error, deadline))) throw error;
      return run();
    });
    if (answers.length !== calls.length)
      throw new Error(`gate.perform_calls returned ${answers.length} answers for ${calls.length} calls`);
    const outcomes: (Outcome | null)[] = [];
    for (const row of answers) outcomes[row.ordinal - 1] = toOutcome(row);
    return outcomes;
  }

  function sendGroup(place: TenantPlace, calls: Call[], deadline: number): Promise<(Outcome | null)[]> {
    onGroup?.(calls.length);
    return send(place, calls, deadline);
  }

  return {
    rows,
    async perform(tenantId, call, deadline, hasOwnTransaction) {
      const first = hasOwnTransaction
        ? (await sendGroup({ lane: "long", tenantId }, [call], deadline))[0]!
        : await groups.run(tenantId, call, deadline);
      if (first !== null) return first;
      const [second] = await send({ lane: "patient", tenantId }, [{ ...call, nonce: null }], deadline);
      if (!second) throw new Unavailable("handed back twice");
      return second;
    },
    performAtOnce: (tenantId, call, deadline) => groups.run(tenantId, call, deadline),
    isDiskFull: disk.isFull,
    reconnect: connections.reconnect,
    end: connections.end,
    load: () => ({ cell, waiting: groups.waiting(), lanes: connections.load(), isDiskFull: disk.mode() === "full" }),
  };
}
