// Closes business days and finishes their statements. Closing is a step of the sequencer, in SQL, and short. Finishing
// is summing up, and reading the lines of both files once for rows, bytes and sha256; that makes the statement
// visible and tells its distributor.
//
// Nothing is claimed here: a closed day never changes, so whoever is killed leaves nothing behind, whoever comes second
// measures the same bytes, and jobs.finish_statement takes only the first. Several workers share the work
// by drawing lots.
import type { Logger } from "../../common/log.ts";
import { measureFile, type Kind, type Line } from "../../common/statement-csv.ts";
import type { SteadyDatabase } from "../../database/reconnecting.ts";

// Days closed in one transaction, and so without a step of the sequencer between them.
const daysPerStep = 50;
// Wide enough that two workers seldom draw the same.
const drawnFrom = 8;
// A statement that could not be finished is left alone so long, so that it keeps no other from a place.
const restMs = 60_000;

type Due = { tenant_id: number; distributor_id: number; business_date: string };
// `order` is the sequencer's connection: its own steps are never in the way of closing.
export type CloserParts = { order: SteadyDatabase; books: SteadyDatabase; log: Logger; stopping: AbortSignal };

export function createCloser({ order, books, log, stopping }: CloserParts) {
  const busy = new Set<string>();
  const restingUntil = new Map<string, number>();

  // Closes what is over, until nothing is.
  async function closeDays(): Promise<void> {
    for (let closed = 1; closed > 0 && !stopping.aborted;) {
      const [row] = await order.rows<{ closed: number }>("select jobs.close_days($1) as closed", [daysPerStep]);
      closed = row!.closed;
    }
  }

  // Finishes what is due, one after the other, until nothing is. May run several times at once.
  async function finishStatements(): Promise<void> {
    for (let due = await draw(); due !== undefined && !stopping.aborted; due = await draw()) {
      try {
        await finish(due);
      } catch (error) {
        if (stopping.aborted) return;
        log.error({ statement: nameOf(due), err: error }, "statement not finished, trying again later");
        restingUntil.set(nameOf(due), performance.now() + restMs);
      } finally {
        busy.delete(nameOf(due));
      }
    }
  }

  async function draw(): Promise<Due | undefined> {
    for (const [name, until] of restingUntil) if (until < performance.now()) restingUntil.delete(name);
    const due = await books.rows<Due>(
      "select tenant_id, distributor_id, business_date::text from jobs.list_due_statements($1)",
      [drawnFrom + busy.size + restingUntil.size],
    );
    const free = due.filter((one) => !busy.has(nameOf(one)) && !restingUntil.has(nameOf(one)));
    const drawn = free[Math.floor(Math.random() * free.length)];
    if (drawn !== undefined) busy.add(nameOf(drawn));
    return drawn;
  }

  async function finish({ tenant_id, distributor_id, business_date }: Due): Promise<void> {
    const measure = (kind: Kind) =>
      measureFile(kind, (after, limit) => {
        stopping.throwIfAborted();
        return books.rows<Line>(
          "select number, to_json(fields) as fields from jobs.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
          [tenant_id, distributor_id, business_date, kind, after, limit],
        );
      });
    await books.rows("select jobs.summarize_statement($1, $2, $3::text::date)", [
      tenant_id,
      distributor_id,
      business_date,
    ]);
    const detail = await measure("detail");
    const summary = await measure("summary");
    await books.rows("select jobs.finish_statement($1, $2, $3::text::date, $4, $5, $6, $7, $8, $9)", [
      tenant_id,
      distributor_id,
      business_date,
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
