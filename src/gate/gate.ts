// The gate to the database: each request is one SQL statement, and the body of its answer passes through unread. Only
// that of a lock or redeem that is granted is written here (answer.ts).
//
// A call first runs in the quick lane, in a group with other calls of its tenant, or alone in the long lane. SQL never
// waits for a lock there: a call that would have to wait is handed back. It then runs again, alone, in the patient
// lane, where it may wait.
import { refuseSettings, refuseStandby } from "../database/session-settings.ts";
import { readVersion, type FoundVersion } from "../database/read-version.ts";
import type { Database } from "../database/types.ts";
import { createCommitTime } from "./commit-time.ts";
import { isCausedByStatement, isDiskFull, openConnections, type Connections, type Place } from "./connections.ts";
import type { Used } from "./credential-uses.ts";
import { createDiskWatch } from "./disk-watch.ts";
import { createGroups } from "./groups.ts";
import type { LaneLoad } from "./lane.ts";
import type { Logger } from "../common/log.ts";
import { answerColumns, toOutcome, type AnswerRow, type Outcome } from "./answer.ts";
import { drawTails } from "../formats/id.ts";
import type { Kind, Line } from "../formats/statement-csv.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { CodeRow } from "../crypto/derive-codes.ts";
import type { KeyProblem } from "../crypto/key-fingerprint.ts";

export type { Outcome } from "./answer.ts";
export type Variant = "A" | "B";
export type CredentialRow = {
  tenant_id: number;
  credential_id: number;
  variant: Variant;
  amount_unit: string;
  sealed_secret: Uint8Array;
};
// nonce null: already spent. body_hash null: the call is a read.
export type Call = {
  credential_id: number;
  nonce: string | null;
  operation: string;
  request_id: string;
  idempotency_key: string | null;
  body_hash: string | null;
  args: Record<string, unknown>;
};
// The answer of get_reconciliation: the file to send, with the size and hash recorded when it became ready.
export type StatementFile = {
  tenant_id: number;
  distributor_id: number;
  /** External ID of the distributor. */
  distributor: string;
  business_date: string;
  kind: Kind;
  rows: number;
  bytes: number;
  sha256: string;
};
// The answer of export_codes: what the codes of a batch are derived from, and the key that encrypts them.
export type CodesFile = {
  tenant_id: number;
  batch_id: number;
  /** External ID of the batch. */
  batch: string;
  /** In hex. Null: only the file's length is asked for. */
  salt: string | null;
  key_version: string;
  total_count: number;
  public_key: string;
};

/** Every method rejects with Unavailable when the database does not answer by the deadline (see common/deadline.ts). */
export type Gate = {
  /** isSeen: the key was found before, so an honest caller may be waiting for the answer. */
  findCredential(accessKey: string, deadline: number, isSeen: boolean): Promise<CredentialRow | null>;
  /** hasOwnTransaction: the call shares no transaction with others, so it joins no group and uses the long lane. */
  perform(tenantId: number, call: Call, deadline: number, options?: { hasOwnTransaction?: boolean }): Promise<Outcome>;
  /** Spends the nonce of a request that the HTTP layer refuses. Returns null if it was new, else its refusal. */
  spendNonce(
    tenantId: number,
    call: Pick<Call, "credential_id" | "nonce" | "request_id">,
    deadline: number,
  ): Promise<Outcome | null>;
  /** Lines of a statement's file after a line number. */
  statementPage(file: StatementFile, after: number, limit: number, deadline: number): Promise<Line[]>;
  /** Notes that these credentials were used in this hour. Returns how many ms are left of it. */
  noteUses(used: Used[], deadline: number): Promise<number>;
  /** Coupons of a batch after a number. */
  codesPage(file: CodesFile, after: number, limit: number, deadline: number): Promise<CodeRow[]>;
  readVersion(deadline: number): Promise<FoundVersion>;
  /** Whether the disk of the database was full a moment ago. */
  isDiskFull(): boolean;
  /** Registers new versions of the master key. `fingerprints` is what fingerprintKeys returns. */
  registerKeys(fingerprints: string, deadline: number): Promise<KeyProblem[]>;
  /** Rejects with a ConfigError if the login has settings that break the service. */
  checkSession(deadline: number): Promise<void>;
  end(): Promise<void>;
};

/** For metrics. isDiskFull: a call has failed because of that, and no later one has shown that there is space. */
export type GateLoad = { waiting: number; lanes: Record<string, LaneLoad>; isDiskFull: boolean };
export type Upkeep = {
  load(): GateLoad;
  /** Gives up all connections, because they are dead. Calls that use them are rejected at once. */
  reconnect(): void;
};

const forNoTenant = { lane: "quick", tenantId: null } as const;
const largestGroup = 64;
// For groups and for each lane. A tenant may have half.
const maxWaiting = 2_000;
// Longer than the statement_timeout plus a slow network, so a connection that takes longer is dead. If all connections
// went silent, the heartbeat notices it earlier (src/database/heartbeat.ts).
const defaultHungAfterMs = 4_500;

type TenantPlace = Place & { tenantId: number };
type GateParts = { connect: () => Database; log: Logger; hungAfterMs?: number; onGroup?: (size: number) => void };

export function createGate(parts: GateParts): Gate & Upkeep {
  const { connect, log, hungAfterMs = defaultHungAfterMs, onGroup } = parts;
  const connections = openConnections({ connect, log, maxWaiting, hungAfterMs });
  const disk = createDiskWatch({ isDiskFull, log });
  const groups = createGroups<Call, Outcome | null>({
    send: (tenantId, calls, deadline, isBehind) => sendGroup({ lane: "quick", tenantId, isBehind }, calls, deadline),
    isCausedByCall: isCausedByStatement,
    areCommitsSlow: createCommitTime({ connections }).isSlow,
    largest: largestGroup,
    maxWaiting,
  });

  async function send(place: TenantPlace, calls: Call[], deadline: number): Promise<(Outcome | null)[]> {
    const rows = await disk.observe(
      connections.rows<AnswerRow>(
        place,
        deadline,
        `select ${answerColumns} from unnest(gate.perform_calls($1, $2::text::jsonb, $3, $4))`,
        [place.tenantId, JSON.stringify(calls), drawTails(calls.length), place.lane === "patient"],
      ),
    );
    if (rows.length !== calls.length)
      throw new Error(`gate.perform_calls returned ${rows.length} answers for ${calls.length} calls`);
    const outcomes: (Outcome | null)[] = [];
    for (const row of rows) outcomes[row.ordinal - 1] = toOutcome(row);
    return outcomes;
  }

  function sendGroup(place: TenantPlace, calls: Call[], deadline: number): Promise<(Outcome | null)[]> {
    onGroup?.(calls.length);
    return send(place, calls, deadline);
  }

  return {
    async findCredential(accessKey, deadline, isSeen) {
      const place = { ...forNoTenant, lane: isSeen ? ("quick" as const) : ("lookup" as const) };
      const text = "select tenant_id, credential_id, variant, amount_unit, sealed_secret from gate.find_credential($1)";
      const rows = await connections.rows<CredentialRow>(place, deadline, text, [accessKey]);
      return rows[0] ?? null;
    },
    async perform(tenantId, call, deadline, { hasOwnTransaction = false } = {}) {
      const first = hasOwnTransaction
        ? (await sendGroup({ lane: "long", tenantId }, [call], deadline))[0]!
        : await groups.run(tenantId, call, deadline);
      if (first !== null) return first;
      const [second] = await send({ lane: "patient", tenantId }, [{ ...call, nonce: null }], deadline);
      if (!second) throw new Unavailable("handed back twice");
      return second;
    },
    async spendNonce(tenantId, base, deadline) {
      const call = { ...base, operation: "spend_nonce", idempotency_key: null, body_hash: null, args: {} };
      const outcome = await groups.run(tenantId, call, deadline);
      return outcome?.status === 200 ? null : outcome;
    },
    ...createPageReader(connections),
    ...createStateReader(connections),
    isDiskFull: disk.isFull,
    reconnect: connections.reconnect,
    end: connections.end,
    load: () => ({ waiting: groups.waiting(), lanes: connections.load(), isDiskFull: disk.mode() === "full" }),
  };
}

// Pages of files.
function createPageReader(connections: Connections): Pick<Gate, "statementPage" | "codesPage"> {
  return {
    statementPage(file, after, limit, deadline) {
      return connections.rows<Line>(
        { lane: "bulk", tenantId: file.tenant_id },
        deadline,
        "select number, to_json(fields) as fields from rules.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
        [file.tenant_id, file.distributor_id, file.business_date, file.kind, after, limit],
      );
    },
    codesPage(file, after, limit, deadline) {
      return connections.rows<CodeRow>(
        { lane: "bulk", tenantId: file.tenant_id },
        deadline,
        "select number, code_attempt, lookup_hash, coupon_id from rules.read_export_page($1, $2, $3, $4)",
        [file.tenant_id, file.batch_id, after, limit],
      );
    },
  };
}

type StateReader = Pick<Gate, "readVersion" | "registerKeys" | "checkSession" | "noteUses">;

// What serve does beside calls: facts about the whole database, for /readyz, and the uses of credentials.
function createStateReader(connections: Connections): StateReader {
  return {
    readVersion: (deadline) => readVersion((text) => connections.rows(forNoTenant, deadline, text, [])),
    registerKeys(fingerprints, deadline) {
      const text = "select version, problem from rules.register_keys($1::text::jsonb)";
      return connections.rows<KeyProblem>(forNoTenant, deadline, text, [fingerprints]);
    },
    async noteUses(used, deadline) {
      const [row] = await connections.rows<{ left_ms: number }>(
        { lane: "bulk", tenantId: null },
        deadline,
        "select gate.note_uses($1::text[]::int[], $2::text[]::int[]) as left_ms",
        [used.map(({ tenantId }) => `${tenantId}`), used.map(({ credentialId }) => `${credentialId}`)],
      );
      return row!.left_ms;
    },
    async checkSession(deadline) {
      const rows: Database["rows"] = (text) => connections.rows(forNoTenant, deadline, text, []);
      await refuseSettings(rows);
      await refuseStandby(rows);
    },
  };
}
