// Closes business days and finishes their statements. Closing is one short step of the sequencer, in SQL. Finishing
// sums up the day and reads the lines of both files once to measure rows, bytes and sha256. That makes the statement
// visible and notifies its distributor.
//
// No worker claims a statement. A closed day never changes, so a killed worker leaves nothing behind, a second worker
// measures the same bytes, and jobs.finish_statement accepts only the first result. Workers draw at random from the
// due statements, so that they rarely pick the same one.
import type { Logger } from "../../common/log.ts";
import { measureFile, type Kind, type Line } from "../../common/statement-csv.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";

// Days closed in one transaction, so without a step of the sequencer between them.
const daysPerStep = 50;
// Enough that two workers rarely draw the same statement.
const drawSize = 8;
// A statement that failed is left alone for this long, so that it does not hold up others.
const restMs = 60_000;

type Due = { tenant_id: number; distributor_id: number; business_date: string };
// Closing uses the sequencer's connection: the two never wait for each other's locks.
type Parts = { sequencer: ReconnectingDatabase; statements: ReconnectingDatabase; log: Logger; stopping: AbortSignal };

export function createCloser({ sequencer, statements, log, stopping }: Parts) {
  const busy = new Set<string>();
  const restingUntil = new Map<string, number>();

  /** Closes all days that are over. */
  async function closeDays(): Promise<void> {
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
        restingUntil.set(nameOf(due), performance.now() + restMs);
      } finally {
        busy.delete(nameOf(due));
      }
    }
  }

  async function draw(): Promise<Due | undefined> {
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
          "select number, to_json(fields) as fields from jobs.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
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
