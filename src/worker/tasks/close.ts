// Closes business days and finishes their statements. Closing is one short SQL transaction under the sequencer's lock.
// Finishing summarizes the day, reads the lines of both files once to measure rows, bytes and sha256, makes the
// statement visible and writes the event for its distributor.
//
// Statements have no leases. A closed day never changes, so a killed worker leaves nothing to clean up, a second worker
// measures the same bytes, and jobs.finish_statement accepts only the first result. Workers pick due statements at
// random, so they rarely pick the same one.
import type { Logger } from "../../common/log.ts";
import { measureFile, type Kind, type Line } from "../../formats/statement-csv.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { noteStuckWork } from "../stuck-work.ts";

// The most days that one transaction closes. The sequencer waits meanwhile.
// equivalent mutant (literal): how many days are closed in one transaction is tuning
const daysPerStep = 50;
// Enough statements that two workers rarely pick the same one.
const drawSize = 8;
// The pause before a failed statement is tried again, so that it does not delay others.
const restMs = 60_000;

type Due = { tenant_id: number; distributor_id: number; business_date: string };
// Closing uses the connection of the sequencer, so the two never wait for each other's locks.
type Parts = { sequencer: ReconnectingDatabase; statements: ReconnectingDatabase; log: Logger; stopping: AbortSignal };

export function createCloser({ sequencer, statements, log, stopping }: Parts) {
  const busy = new Set<string>();
  const restingUntil = new Map<string, number>();

  /** Closes all days that are over. */
  async function closeDays(): Promise<void> {
    // equivalent mutant (literal 1): any number above 0 begins the first round
    for (let closed = 1; closed > 0 && !stopping.aborted;) {
      const [row] = await sequencer.rows<{ closed: number }>("select jobs.close_days($1) as closed", [daysPerStep]);
      closed = row!.closed;
    }
  }

  /** Finishes due statements one by one until none is left. Several calls may run at once. */
  async function finishStatements(): Promise<void> {
    for (let due = await draw(); due !== undefined && !stopping.aborted; due = await draw()) {
      try {
        await finish(due);
      } catch (error) {
        if (stopping.aborted) return;
        log.error({ statement: nameOf(due), err: error }, "statement not finished; trying again later");
        const { tenant_id, distributor_id: party_id, business_date: subject } = due;
        await noteStuckWork(statements, { work: "statement", tenant_id, party_id, subject }, error);
        restingUntil.set(nameOf(due), performance.now() + restMs);
      } finally {
        busy.delete(nameOf(due));
      }
    }
  }

  async function draw(): Promise<Due | undefined> {
    // equivalent mutant (boundary): two readings of the clock are not equal
    for (const [name, until] of restingUntil) if (until < performance.now()) restingUntil.delete(name);
    const due = await statements.rows<Due>(
      "select tenant_id, distributor_id, business_date::text from jobs.list_due_statements($1)",
      [drawSize + busy.size + restingUntil.size],
    );
    const free = due.filter((one) => !busy.has(nameOf(one)) && !restingUntil.has(nameOf(one)));
    const drawn = free[Math.floor(Math.random() * free.length)];
    if (drawn !== undefined) busy.add(nameOf(drawn));
    return drawn;
  }

  async function finish({ tenant_id, distributor_id, business_date }: Due): Promise<void> {
    const day = [tenant_id, distributor_id, business_date];
    const measure = (kind: Kind) =>
      measureFile(kind, (after, limit) => {
        stopping.throwIfAborted();
        return statements.rows<Line>(
          "select number, to_json(fields) as fields " +
            "from rules.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
          [...day, kind, after, limit],
        );
      });
    await statements.rows("select jobs.summarize_statement($1, $2, $3::text::date)", day);
    const detail = await measure("detail");
    const summary = await measure("summary");
    await statements.rows("select jobs.finish_statement($1, $2, $3::text::date, $4, $5, $6, $7, $8, $9)", [
      ...day,
      detail.rows,
      detail.bytes,
      detail.sha256,
      summary.rows,
      summary.bytes,
      summary.sha256,
    ]);
  }

  return { closeDays, finishStatements };
}

function nameOf({ tenant_id, distributor_id, business_date }: Due): string {
  return `${tenant_id}/${distributor_id}/${business_date}`;
}
