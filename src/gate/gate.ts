// The gate to the database: each request is one SQL statement, and the body of its answer passes through unread. Only
// that of a lock or redeem that is granted is written here (answer.ts). How a call runs: cell-calls.ts.
import { refuseSettings, refuseStandby } from "../database/session-settings.ts";
import { readVersion, type FoundVersion } from "../database/read-version.ts";
import type { Database } from "../database/types.ts";
import type { Call, Outcome } from "./answer.ts";
import type { CellLoad } from "./cell-calls.ts";
import type { Place } from "./connections.ts";
import { openCells, type Cells } from "./cells.ts";
import type { Used } from "./credential-uses.ts";
import type { Logger } from "../common/log.ts";
import type { Kind, Line } from "../formats/statement-csv.ts";
import type { CodeRow } from "../crypto/derive-codes.ts";
import type { KeyProblem } from "../crypto/key-fingerprint.ts";

export type { Call, Outcome } from "./answer.ts";
export type Variant = "A" | "B";
export type CredentialRow = {
  tenant_id: number;
  credential_id: number;
  variant: Variant;
  amount_unit: string;
  sealed_secret: Uint8Array;
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
  /** The cell in which a tenant was found last. 1 without a router. */
  cellOf(tenantId: number): number;
  readVersion(deadline: number): Promise<FoundVersion>;
  /** The cells behind a router. version null: the cell does not answer, or takes no writes. Empty without a router. */
  readCells(deadline: number): Promise<{ cell: number; version: FoundVersion | null }[]>;
  /** Whether the disk of the database was full a moment ago. */
  isDiskFull(): boolean;
  /** Registers new versions of the master key. `fingerprints` is what fingerprintKeys returns. */
  registerKeys(fingerprints: string, deadline: number): Promise<KeyProblem[]>;
  /** Rejects with a ConfigError if the login has settings that break the service. */
  checkSession(deadline: number): Promise<void>;
  end(): Promise<void>;
};

export type Upkeep = {
  /** Of each cell that was called, and of the router. */
  load(): CellLoad[];
  /** Gives up all connections, because they are dead. Calls that use them are rejected at once. */
  reconnect(): void;
};

// What is left for an answer when a cell did not give one.
const marginMs = 300;
const forNoTenant = { lane: "quick", tenantId: null } as const;
// Longer than the statement_timeout plus a slow network, so a connection that takes longer is dead. If all connections
// went silent, the heartbeat notices it earlier (src/database/heartbeat.ts).
const defaultHungAfterMs = 4_500;

type GateParts = { connect: () => Database; log: Logger; hungAfterMs?: number; onGroup?: (size: number) => void };

export function createGate(parts: GateParts): Gate & Upkeep {
  const { hungAfterMs = defaultHungAfterMs } = parts;
  const cells = openCells({ ...parts, hungAfterMs });
  return {
    findCredential: createKeySearch(cells),
    perform: (tenantId, call, deadline, { hasOwnTransaction = false } = {}) =>
      cells.ofTenant(tenantId).perform(tenantId, call, deadline, hasOwnTransaction),
    async spendNonce(tenantId, base, deadline) {
      const call = { ...base, operation: "spend_nonce", idempotency_key: null, body_hash: null, args: {} };
      const outcome = await cells.ofTenant(tenantId).performAtOnce(tenantId, call, deadline);
      return outcome?.status === 200 ? null : outcome;
    },
    ...createPageReader(cells),
    ...createStateReader(cells),
    cellOf: cells.numberOf,
    isDiskFull: cells.base.isDiskFull,
    reconnect: cells.reconnect,
    end: cells.end,
    load: cells.load,
  };
}

// Where access keys are looked up: in the database, or behind a router in the cell where the key was found last, and
// then in all others at once. A cell that hangs keeps no answer of another one back.
function createKeySearch(cells: Cells): Gate["findCredential"] {
  const columns = "tenant_id, credential_id, variant, amount_unit, sealed_secret";
  // A database never becomes a router.
  let isAlone = false;

  return async function findCredential(accessKey, deadline, isSeen) {
    const place = { ...forNoTenant, lane: isSeen ? ("quick" as const) : ("lookup" as const) };
    async function ask(cell: number): Promise<CredentialRow | null> {
      const text = `select ${columns} from gate.find_credential($1, $2)`;
      const [row] = await cells.ofNumber(cell).rows<CredentialRow>(place, deadline, text, [cell, accessKey]);
      if (row !== undefined) cells.note(accessKey, row.tenant_id, cell);
      return row ?? null;
    }
    const known = cells.ofKey(accessKey);
    const found = known === undefined ? null : await ask(known);
    if (found !== null) return found;
    const numbers = isAlone ? [] : await listCells(cells, place, deadline);
    if (numbers.length > 0) return findFirst(numbers.filter((cell) => cell !== known).map(ask));
    const text = `select ${columns} from gate.find_credential($1)`;
    const [row] = await cells.base.rows<CredentialRow>(place, deadline, text, [accessKey]);
    isAlone = true;
    return row ?? null;
  };
}

// Empty without a router.
async function listCells(cells: Cells, place: Place, deadline: number): Promise<number[]> {
  const found = await cells.base.rows<{ cell: number }>(place, deadline, "select * from gate.list_cells() as cell", []);
  return found.map(({ cell }) => cell);
}

// Null only if all answered so: a key may be in the cell that did not answer.
async function findFirst<T>(asked: Promise<T | null>[]): Promise<T | null> {
  const found = asked.map(async (one) => (await one) ?? Promise.reject(new NotFound()));
  return Promise.any(found).catch(({ errors }: AggregateError) => {
    const failure = errors.find((error) => !(error instanceof NotFound));
    if (failure !== undefined) throw failure;
    return null;
  });
}
class NotFound extends Error {}

// Pages of files.
function createPageReader(cells: Cells): Pick<Gate, "statementPage" | "codesPage"> {
  return {
    statementPage(file, after, limit, deadline) {
      return cells
        .ofTenant(file.tenant_id)
        .rows<Line>(
          { lane: "bulk", tenantId: file.tenant_id },
          deadline,
          "select number, to_json(fields) as fields from rules.read_statement_page($1, $2, $3::text::date, $4, $5, $6)",
          [file.tenant_id, file.distributor_id, file.business_date, file.kind, after, limit],
        );
    },
    codesPage(file, after, limit, deadline) {
      return cells
        .ofTenant(file.tenant_id)
        .rows<CodeRow>(
          { lane: "bulk", tenantId: file.tenant_id },
          deadline,
          "select number, code_attempt, lookup_hash, coupon_id from rules.read_export_page($1, $2, $3, $4)",
          [file.tenant_id, file.batch_id, after, limit],
        );
    },
  };
}

type StateReader = Pick<Gate, "readVersion" | "readCells" | "registerKeys" | "checkSession" | "noteUses">;

// What serve does beside calls: facts about the whole database, for /readyz, and the uses of credentials.
function createStateReader(cells: Cells): StateReader {
  const { rows } = cells.base;
  const askCell = <T>(cell: number, deadline: number, text: string, parameters: unknown[]): Promise<T[]> =>
    cells.ofNumber(cell).rows<T>(forNoTenant, deadline - marginMs, text, parameters);
  return {
    readVersion: (deadline) => readVersion((text) => rows(forNoTenant, deadline, text, [])),
    async registerKeys(fingerprints, deadline) {
      const numbers = await listCells(cells, forNoTenant, deadline);
      if (numbers.length === 0) {
        const text = "select version, problem from rules.register_keys($1::text::jsonb)";
        return rows<KeyProblem>(forNoTenant, deadline, text, [fingerprints]);
      }
      const text = "select version, problem from gate.register_keys($1, $2::text::jsonb)";
      // A cell that does not answer now is asked again by the next check.
      const asked = numbers.map((cell) => askCell<KeyProblem>(cell, deadline, text, [cell, fingerprints]));
      return (await Promise.all(asked.map((each) => each.catch(() => [])))).flat();
    },
    async readCells(deadline) {
      const numbers = await listCells(cells, forNoTenant, deadline);
      const text = "select migration, code, cell, server_cell, is_read_only from gate.read_cell_version($1)";
      return Promise.all(
        numbers.map(async (cell) => {
          const asked = askCell<FoundVersion & { is_read_only: boolean }>(cell, deadline, text, [cell]);
          const [version] = await asked.catch(() => []);
          return { cell, version: version?.is_read_only === false ? version : null };
        }),
      );
    },
    async noteUses(used, deadline) {
      const text = "select gate.note_uses($1::text[]::int[], $2::text[]::int[]) as left_ms";
      const noted = [...Map.groupBy(used, ({ tenantId }) => cells.ofTenant(tenantId))].map(async ([cell, some]) => {
        const [row] = await cell.rows<{ left_ms: number }>({ lane: "bulk", tenantId: null }, deadline, text, [
          some.map(({ tenantId }) => `${tenantId}`),
          some.map(({ credentialId }) => `${credentialId}`),
        ]);
        return row!.left_ms;
      });
      return Math.min(...(await Promise.all(noted)));
    },
    async checkSession(deadline) {
      const ask: Database["rows"] = (text) => rows(forNoTenant, deadline, text, []);
      await refuseSettings(ask);
      await refuseStandby(ask);
    },
  };
}
