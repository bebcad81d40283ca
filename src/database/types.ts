// The interface of a database for the rest of the service, independent of the driver.

export interface Options {
  /** Shown in pg_stat_activity. */
  name: string;
  /** The role to act as. Without it, the connection acts as the login role. */
  role?: string;
  /** The most connections to open at once. */
  max?: number;
  /** The client cancels half a second later: the server's own limit leaves out the wait for a synchronous standby. */
  statementTimeoutMs?: number;
  lockTimeoutMs?: number;
  /** The server ends a session that sends nothing for this time. */
  idleTimeoutMs?: number;
  /** Further settings of its sessions. */
  settings?: Readonly<Record<string, string>>;
  /** Called when a channel that the session listens to is notified. Only for openSession. */
  onNotify?: () => void;
}

export interface Database {
  /**
   * Runs one prepared statement. int8 and numeric come back as strings, json and jsonb come back parsed: select
   * `…::text` where digits or key order matter. Pass JSON as text: `$1::text::jsonb`. A flat array is passed as it is
   * (`$1::text[]`, `$1::text[]::uuid[]`).
   *
   * Statements with the same `pipe` that run at the same time share a connection: the server begins one as soon as the
   * one before has committed, while its answer is still on the way. At most two of a pipe may run.
   */
  rows<T = Record<string, unknown>>(text: string, params?: readonly unknown[], pipe?: object): Promise<T[]>;
  end(): Promise<void>;
}

/** One connection that keeps its state: locks, settings, a transaction. It never reconnects: once lost, it fails. */
export interface Session extends Database {
  /** Runs a script of several statements. */
  run(text: string): Promise<void>;
  /** Aborts when the connection is lost. */
  lost: AbortSignal;
}
