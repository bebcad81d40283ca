// Business days in a test: distributors whose midnights come when the test wants them, and the worker's part by hand.
//
// There is no test clock. A POSIX time zone such as <X>-01:02:03 has its midnight at any second of the day one likes, so
// a distributor that is given one lives through a real midnight now; one that is moved 24 hours to the east has
// the next day at once.
import { Writable } from "node:stream";
import type { Test } from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { createLog } from "../../src/common/log.ts";
import { createCloser } from "../../src/worker/tasks/close.ts";
import { exitCodeOf, startProgram } from "./program.ts";
import { secretOf } from "./provisioning.ts";
import { newRequestId, type Running, type Teardown } from "./service.ts";

export const daySeconds = 86_400;

// A zone that is so many seconds before UTC. POSIX counts the other way.
export function zoneOf(offsetSeconds: number): string {
  return `<X>${posixOffset(offsetSeconds)}`;
}

export function posixOffset(offsetSeconds: number): string {
  const size = Math.abs(offsetSeconds);
  const [hours, minutes, seconds] = [Math.floor(size / 3600), Math.floor(size / 60) % 60, size % 60];
  return `${offsetSeconds > 0 ? "-" : "+"}${hours}:${minutes}:${seconds}`;
}

// Where it is noon now: no midnight comes while a test runs.
export function noonOffset(): number {
  return daySeconds / 2 - (Math.floor(Date.now() / 1000) % daySeconds);
}

// The offset with which a moment (Unix seconds) is a local midnight.
export function midnightOffset(moment: number): number {
  return -(moment % daySeconds);
}

export async function setZone(service: Running, party: string, zone: string): Promise<void> {
  await service.owner.rows("update core.party set time_zone = $2 where external_id = $1", [party, zone]);
}

// A tenant of Variant A with so many distributors, ak_many, one merchant, and a template of 7.35 off.
export function manyDistributors(count: number) {
  const parties = Array.from({ length: count }, (_, index) => `pty_d${index}`);
  return {
    parties,
    tenant: {
      id: "ten_many",
      name: "many",
      variant: "A",
      parties: parties.map((id) => ({ id, name: id, time_zone: "UTC" })),
      merchants: [
        { id: "mch_many", name: "m", party: parties[0] },
        { id: "mch_other", name: "o", party: parties[0] },
      ],
      templates: ["tpl_one", "tpl_two"].map((id) => ({
        id,
        name: id,
        maker: parties[0],
        currency: "EUR",
        discount: { type: "fixed", amount: 7.35 },
        valid_from: "2020-01-01T00:00:00Z",
        valid_to: "2099-01-01T00:00:00Z",
      })),
      credentials: [{ access_key: "ak_many", secret: secretOf("ak_many") }],
    },
  };
}

export type Books = Awaited<ReturnType<typeof keepBusinessDays>>;

// What the worker does for the books, by hand. `errors`: what it would have logged.
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

  async function sequence(): Promise<void> {
    for (;;) {
      const [step] = await worker.rows<{ is_drained: boolean }>("select is_drained from jobs.sequence_events(1000)");
      if (step!.is_drained) return;
    }
  }
  // Everything that is visible posted, everything that is over closed and finished.
  async function close(): Promise<void> {
    await sequence();
    await closer.closeDays();
    await closer.finishStatements();
  }
  return { worker, closer, closerOn, errors, sequence, close };
}

// A batch for each distributor, released, so that its books open with the next step of the sequencer.
export async function openBooks(service: Running, parties: string[], count: number): Promise<Map<string, string[]>> {
  const by = service.as("ak_many");
  const codes = new Map<string, string[]>();
  for (const [index, distributor] of parties.entries()) {
    const template = index % 2 === 0 ? "tpl_one" : "tpl_two";
    const created = await by.post("/v1/batches", {
      request_id: newRequestId(),
      template,
      total_count: count,
      distributor,
    });
    const batch = created.json.batch.external_id as string;
    await service.mint();
    const issued = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch, true))).flat();
    codes.set(
      distributor,
      issued.map(({ code }) => code),
    );
    const released = await by.post("/v1/batches/allocate", { request_id: newRequestId(), batch });
    if (released.status !== 200) throw new Error(released.text);
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
    `select distributor, business_date::text as date, entry_count as entries, ready_at is not null as is_ready, detail_sha256 as detail, summary_sha256 as summary
     from report.statement order by closed_at, distributor`,
  );
  return rows.map((row) => ({ ...row }));
}

// The worker as a process of its own, killed in the end at the latest.
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
