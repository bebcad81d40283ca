// The way to the database: one request is one SQL statement, and its answer is text that passes through unread.
//
// Each call first goes through the quick lane, in a group of calls of its tenant, where SQL never waits for a lock: what
// would have to wait is handed back (status 0) and runs again alone in the patient lane, where it may. So calls that
// wait for each other, or for a DBA who holds a row, fill only the patient lane's connections.
import { isConnectionError, sqlState } from "../database/connect.ts";
import type { Database } from "../database/types.ts";
import { createGroups } from "./groups.ts";
import { createLane, type Lane, type LaneLoad } from "./lane.ts";
import type { Logger } from "../common/log.ts";
import { Problem, unavailable } from "../common/problem.ts";
import type { Kind, Line } from "../common/statement-csv.ts";

export type Variant = "A" | "B";
export type CredentialRow = {
  tenant_id: number;
  credential_id: number;
  variant: Variant;
  amount_unit: string;
  sealed_secret: Uint8Array;
};
export type Call = {
  credential_id: number;
  nonce: string | null; // null: spent before
  operation: string;
  request_id: string;
  idempotency_key: string | null;
  body_hash: string | null; // null: a read
  args: Record<string, unknown>;
};
// code: the error code, null for a success. resource: what a NOT_FOUND is about.
export type Outcome = {
  status: number;
  code: string | null;
  resource: string | null;
  body: string;
  isReplay: boolean;
};
export type Version = { migration: string; code: string };
// What get_reconciliation answers: which file is meant, and what it was when its day was closed.
export type StatementFile = {
  tenant_id: number;
  distributor_id: number;
  business_date: string;
  kind: Kind;
  rows: number;
  bytes: number;
  sha256: string;
};

export type Gate = {
  findCredential(accessKey: string, deadline: number): Promise<CredentialRow | null>;
  perform(tenantId: number, call: Call, deadline: number, how?: { runsAlone?: boolean }): Promise<Outcome>;
  // Spends the nonce of a request that the HTTP layer is about to refuse. Returns null if the nonce was new, else the
  // refusal to send instead.
  spendNonce(
    tenantId: number,
    call: Pick<Call, "credential_id" | "nonce" | "request_id">,
    deadline: number,
  ): Promise<Outcome | null>;
  // Lines of a statement's file behind a number.
  statementPage(file: StatementFile, after: number, limit: number, deadline: number): Promise<Line[]>;
  readVersion(deadline: number): Promise<Version>;
  end(): Promise<void>;
};

// For metrics.
export type GateLoad = { waiting: number; lanes: Record<string, LaneLoad> };

const largestGroup = 64;
const quickWidth = 12;
const patientWidth = 6;
// Downloads: pages of them take longer than calls do, and must not stand before calls.
const bulkWidth = 2;
const maxWaiting = 1_000;
// Longer than the statement_timeout plus a slow network: by then the connection is dead. And not much longer: where a network has lost
// all connections without a word, calls are served again only after this.
const defaultHungAfterMs = 4_500;
export const connectionCount = quickWidth + patientWidth + bulkWidth;

type Pool = { database: Database; quick: Lane; patient: Lane; bulk: Lane };
// http_status null: the call is handed back.
type OutcomeRow = {
  ordinal: number;
  http_status: number | null;
  code: string | null;
  resource: string | null;
  body: string;
  is_replay: boolean;
};

type GateParts = { connect: () => Database; log: Logger; hungAfterMs?: number; onGroup?: (size: number) => void };

export function createGate({
  connect,
  log,
  hungAfterMs = defaultHungAfterMs,
  onGroup,
}: GateParts): Gate & { load(): GateLoad } {
  let pool = openPool();

  function openPool(): Pool {
    const openLane = (width: number) => createLane({ width, maxWaiting, hungAfterMs });
    return {
      database: connect(),
      quick: openLane(quickWidth),
      patient: openLane(patientWidth),
      bulk: openLane(bulkWidth),
    };
  }

  // A driver's pool that no longer settles its promises is left behind with everything that waits in it.
  function replace(hung: Pool): void {
    if (pool !== hung) return;
    log.warn("the database connections hang, opening new ones");
    pool = openPool();
    hung.database.end().catch(() => {});
  }

  async function ask<T>(
    lane: "quick" | "patient" | "bulk",
    deadline: number,
    text: string,
    parameters: unknown[],
  ): Promise<T[]> {
    const current = pool;
    try {
      return await current[lane].run(
        deadline,
        () => current.database.rows<T>(text, parameters),
        () => replace(current),
      );
    } catch (error) {
      throw isAway(error) ? unavailable(error) : error;
    }
  }

  async function send(
    lane: "quick" | "patient",
    tenantId: number,
    calls: Call[],
    deadline: number,
  ): Promise<(Outcome | null)[]> {
    const rows = await ask<OutcomeRow>(
      lane,
      deadline,
      "select ordinal, http_status, code, resource, body, is_replay from gate.perform($1, $2::text::jsonb, $3)",
      [tenantId, JSON.stringify(calls), lane === "patient"],
    );
    if (rows.length !== calls.length)
      throw new Error(`gate.perform returned ${rows.length} answers for ${calls.length} calls`);
    const outcomes: (Outcome | null)[] = [];
    for (const row of rows) outcomes[row.ordinal - 1] = toOutcome(row);
    return outcomes;
  }

  function sendGroup(tenantId: number, calls: Call[], deadline: number): Promise<(Outcome | null)[]> {
    onGroup?.(calls.length);
    return send("quick", tenantId, calls, deadline);
  }
  const groups = createGroups({ send: sendGroup, isUndone: isRefusedByServer, largest: largestGroup, maxWaiting });

  return {
    async findCredential(accessKey, deadline) {
      const rows = await ask<CredentialRow>(
        "quick",
        deadline,
        "select tenant_id, credential_id, variant, amount_unit, sealed_secret from gate.find_credential($1)",
        [accessKey],
      );
      return rows[0] ?? null;
    },
    async perform(tenantId, call, deadline, { runsAlone = false } = {}) {
      const outcome = runsAlone
        ? (await sendGroup(tenantId, [call], deadline))[0]
        : await groups.run(tenantId, call, deadline);
      if (outcome) return outcome;
      const [final] = await send("patient", tenantId, [{ ...call, nonce: null }], deadline);
      if (!final) throw unavailable(new Error("handed back twice"));
      return final;
    },
    async spendNonce(tenantId, call, deadline) {
      const outcome = await groups.run(
        tenantId,
        { ...call, operation: "spend_nonce", idempotency_key: null, body_hash: null, args: {} },
        deadline,
      );
      return outcome === null || outcome.status === 200 ? null : outcome;
    },
    statementPage(file, after, limit, deadline) {
      return ask<Line>(
        "bulk",
        deadline,
        "select number, to_json(fields) as fields from gate.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
        [file.tenant_id, file.distributor_id, file.business_date, file.kind, after, limit],
      );
    },
    async readVersion(deadline) {
      const [row] = await ask<Version>("quick", deadline, "select migration, code from gate.read_version()", []);
      if (row === undefined) throw new Error("gate.read_version gave no row");
      return row;
    },
    end: () => pool.database.end(),
    load: () => ({
      waiting: groups.waiting(),
      lanes: { quick: pool.quick.load(), patient: pool.patient.load(), bulk: pool.bulk.load() },
    }),
  };
}

function toOutcome({ http_status: status, code, resource, body, is_replay: isReplay }: OutcomeRow): Outcome | null {
  return status === null ? null : { status, code, resource, body, isReplay };
}

// Whether the server undid a group because of something in it. What says that the server is away or full is no such thing.
function isRefusedByServer(error: unknown): boolean {
  const cause = error instanceof Problem ? error.cause : error;
  const state = sqlState(cause);
  return state !== null && !/^(08|53|57P|25006)/.test(state);
}

// Whether trying again later may help: no connection, lock or statement timeout, deadlock or serialization failure,
// out of resources (53), shut down (57P), read only after a failover. Everything else is a bug.
function isAway(error: unknown): boolean {
  return isConnectionError(error) || /^(08|40|53|57P|57014|55P03|25006)/.test(sqlState(error) ?? "");
}
