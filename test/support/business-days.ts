// Business days in tests: distributors whose midnight comes when the test needs it, and the worker's steps on request.
//
// There is no test clock. A POSIX time zone such as <X>-01:02:03 can have its midnight at any second, so a distributor
// in such a zone has a real midnight now. Moved 24 hours to the east, it has the next day at once.
import { Writable } from "node:stream";
import type { Test } from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { createLog } from "../../src/common/log.ts";
import { createCloser } from "../../src/worker/tasks/close.ts";
import { postOk } from "./client.ts";
import { exitCodeOf, startProgram } from "./program.ts";
import { sequenceEvents } from "./sequence-events.ts";
import { newRequestId, type Running, type Teardown } from "./service.ts";
import { credential, merchant, party, template } from "./tenants.ts";

export const daySeconds = 86_400;

// The zone whose clock is `offsetSeconds` ahead of UTC. POSIX uses the opposite sign.
export function zoneOf(offsetSeconds: number): string {
  return `<X>${posixOffset(offsetSeconds)}`;
}

export function posixOffset(offsetSeconds: number): string {
  const size = Math.abs(offsetSeconds);
  const [hours, minutes, seconds] = [Math.floor(size / 3600), Math.floor(size / 60) % 60, size % 60];
  return `${offsetSeconds > 0 ? "-" : "+"}${hours}:${minutes}:${seconds}`;
}

let noon = { at: -Infinity, offset: 0 };

// The offset where it is noon, so that no midnight comes during a test. It stays the same for an hour: two calls mean
// the same day.
export function noonOffset(): number {
  const at = Math.floor(Date.now() / 1000);
  if (at >= noon.at + 3_600) noon = { at, offset: daySeconds / 2 - (at % daySeconds) };
  return noon.offset;
}

// The offset for which the moment (Unix seconds) is local midnight.
export function midnightOffset(moment: number): number {
  return -(moment % daySeconds);
}

export async function setZone(service: Running, party: string, zone: string): Promise<void> {
  await service.owner.rows("update core.party set time_zone = $2 where external_id = $1", [party, zone]);
}

// A tenant of Variant A with `count` distributors, the credential ak_many, and templates of 7.35 off.
export function manyDistributors(count: number) {
  const parties = Array.from({ length: count }, (_, index) => `pty_d${index}`);
  const maker = parties[0]!;
  return {
    parties,
    tenant: {
      id: "ten_many",
      name: "many",
      variant: "A",
      parties: parties.map((id) => party(id, { time_zone: "UTC" })),
      merchants: ["mch_many", "mch_other"].map((id) => merchant(id, maker)),
      templates: ["tpl_one", "tpl_two"].map((id) => template(id, maker, { discount: { type: "fixed", amount: 7.35 } })),
      credentials: [credential("ak_many")],
    },
  };
}

/** SQL: closes the open day of each book, however early. */
export const closeOpenDays = `
  do $$ begin
    update core.ledger_book set open_on = open_on + 1;
    perform rules.close_day(b.tenant_id, b.party_id, b.open_on - 1) from core.ledger_book b;
  end $$`;

export type Books = Awaited<ReturnType<typeof keepBusinessDays>>;

// The worker's steps for books, on request. errors: what the worker would log.
export async function keepBusinessDays(t: Teardown, service: Running) {
  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => worker.end());
  const errors: unknown[] = [];
  const lines = new Writable({
    write(chunk, _, done) {
      errors.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const closerOn = (database: Pick<Database, "rows" | "end">) =>
    createCloser({
      sequencer: database,
      statements: database,
      log: createLog("error", lines),
      stopping: new AbortController().signal,
    });
  const closer = closerOn(worker);

  const sequence = () => sequenceEvents(worker);
  // Posts every visible entry, closes every day that is over, and finishes its statement.
  async function close(): Promise<void> {
    await sequence();
    await closer.closeDays();
    await closer.finishStatements();
  }
  return { worker, closer, closerOn, errors, sequence, close };
}

// Releases a batch for each distributor, so that the sequencer's next step opens its book. Returns the codes.
export async function openBooks(service: Running, parties: string[], count: number): Promise<Map<string, string[]>> {
  const by = service.as("ak_many");
  const codes = new Map<string, string[]>();
  for (const [index, distributor] of parties.entries()) {
    const template = index % 2 === 0 ? "tpl_one" : "tpl_two";
    const request = { request_id: newRequestId(), template, total_count: count, distributor };
    const batch = (await postOk(by, "/v1/batches", request)).batch.external_id as string;
    await service.mint();
    const issued = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch, true))).flat();
    codes.set(
      distributor,
      issued.map(({ code }) => code),
    );
    await postOk(by, "/v1/batches/allocate", { request_id: newRequestId(), batch });
  }
  return codes;
}

export type StatementRow = {
  distributor: string;
  date: string;
  entries: number;
  is_ready: boolean;
  detail: string | null;
  summary: string | null;
};

export async function listStatements(service: Running): Promise<StatementRow[]> {
  const rows = await service.owner.rows<StatementRow>(
    `select distributor, business_date::text as date, entry_count as entries, ready_at is not null as is_ready,
            detail_sha256 as detail, summary_sha256 as summary
     from report.statement order by closed_at, distributor`,
  );
  return rows.map((row) => ({ ...row }));
}

// The worker as a separate process, killed at the end of the test at the latest.
export function startWorker(t: Test, service: Running) {
  const program = startProgram(service, "work");
  program.stdout.resume();
  program.stderr.resume();
  t.teardown(() => kill());
  async function kill(): Promise<void> {
    program.kill("SIGKILL");
    await exitCodeOf(program);
  }
  return { kill };
}
