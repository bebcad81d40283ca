// `npm run serve`: the HTTP side. Several processes may run at once, because none holds state that must survive.
import { createApp } from "./http/app.ts";
import { createReference } from "./http/openapi/reference.ts";
import { events } from "./http/routes/event.ts";
import { routes } from "./http/routes/table.ts";
import { defineCommand } from "./command-line/command.ts";
import { ConfigError, readConfig, type Limits } from "./config/config.ts";
import { findConsoleUrl } from "./config/console.ts";
import { connect, openSession } from "./database/connect.ts";
import { startHeartbeat } from "./database/heartbeat.ts";
import type { Address } from "./config/database-address.ts";
import { findAddress } from "./embedded/find-address.ts";
import { loadMasterKeys } from "./embedded/load-keys.ts";
import { connectionCount } from "./gate/connections.ts";
import { createCredentialUses } from "./gate/credential-uses.ts";
import { createGate, type Gate } from "./gate/gate.ts";
import { createKeyReview, fingerprintKeys } from "./crypto/key-fingerprint.ts";
import type { MasterKeys } from "./crypto/keys.ts";
import { loadEncryption } from "./crypto/public-key.ts";
import { createLog, type Logger } from "./common/log.ts";
import { startMetrics, type Metrics } from "./server/metrics-server.ts";
import { observeServe } from "./http/metrics.ts";
import { expectedVersion } from "./migration/db-files.ts";
import { isCurrent, readBuild, refuseOtherVersion } from "./migration/version.ts";
import { stopOnSignal } from "./common/program.ts";
import { programSettings, serveSettings } from "./config/settings.ts";
import { Unavailable } from "./common/unavailable.ts";
import type { Readiness } from "./http/probes.ts";
import { listen, type Listening } from "./http/listener.ts";

const askWithinMs = 2_000;
const role = "coupon_api";
const connectionOptions = {
  role,
  name: "coupon serve",
  max: connectionCount,
  statementTimeoutMs: 3_000,
  lockTimeoutMs: 2_000,
};

export type Service = { url: string; stop(): Promise<void> };
export type ServeParts = {
  metrics?: Metrics | null;
  address: Address;
  keys: MasterKeys;
  limits: Limits;
  /** Where browsers reach the console. */
  consoleUrl?: string;
  /** Whether to serve the API description and its page. */
  hasDocs?: boolean;
  /** Open already, because a program opens its port before it does anything else. */
  listening: Listening;
  /** How often it notes which credentials were used. */
  noteUsesEveryMs?: number;
  log: Logger;
};

export async function serve(parts: ServeParts): Promise<Service> {
  const { address, keys, limits, consoleUrl, hasDocs = true, listening, noteUsesEveryMs, log, metrics = null } = parts;
  const observed = metrics === null ? null : observeServe(metrics);
  const observer = observed?.observer;
  const gate = createGate({
    log,
    ...(observer !== undefined && { onGroup: observer.grouped }),
    connect: () => connect(address, connectionOptions),
  });
  const heartbeat = startHeartbeat({
    open: () => openSession(address, { role, name: "coupon serve heartbeat", idleTimeoutMs: 10_000 }),
    begin: (session) => session.rows("select"),
    onSilent: gate.reconnect,
  });
  const uses = createCredentialUses({ gate, log, ...(noteUsesEveryMs !== undefined && { everyMs: noteUsesEveryMs }) });
  const endAll = async () => {
    await uses.stop();
    await heartbeat.stop();
    await gate.end();
  };
  const checkDatabase = createDatabaseCheck(gate, keys);
  try {
    const deadline = performance.now() + askWithinMs;
    await gate.checkSession(deadline);
    await refuseOtherVersion(gate.readVersion(deadline));
    await checkDatabase(deadline);
  } catch (error) {
    if (error instanceof ConfigError) {
      await endAll();
      throw error;
    }
    log.warn({ err: error }, "the database cannot be checked yet; /readyz tries again");
  }
  const load = { openRequests: 0 };
  const handler = createApp({
    routes,
    gate,
    uses,
    keys,
    log,
    limits,
    ...(consoleUrl !== undefined && { consoleUrl }),
    load,
    readiness: createReadiness(gate, checkDatabase),
    pages: hasDocs ? createReference({ routes, events }) : [],
    ...(observer !== undefined && { observer }),
  });
  listening.serve({
    handler,
    onRefused: ({ status, code }) => observer?.answered(null, status, code, 0),
    onDropped: () => observer?.refused("connections"),
  });
  observed?.show({ openRequests: () => load.openRequests, connections: listening.connections, gate: gate.load });
  metrics?.watch({ program: "serve", ask: async () => void (await gate.readVersion(performance.now() + askWithinMs)) });
  return {
    url: listening.url,
    async stop() {
      await listening.stop();
      await endAll();
    },
  };
}

type DatabaseCheck = ReturnType<typeof createDatabaseCheck>;

// Rejects with a ConfigError if the database was used with other keys, or has settings that break the service.
function createDatabaseCheck(gate: Gate, keys: MasterKeys) {
  const fingerprints = fingerprintKeys(keys);
  const review = createKeyReview(keys);
  return async (deadline: number): Promise<void> => {
    await gate.checkSession(deadline);
    review(await gate.registerKeys(fingerprints, deadline));
  };
}

// A database one version ahead is still ready: functions that programs call stay for one version (docs/database.md,
// "Change the schema"). Five kinds of database are not ready: an older one; one with other keys that replaced ours
// while we run; one on a full disk, which refuses nearly every call; one with settings that break the service; and a
// standby, until it is promoted.
function createReadiness(gate: Gate, checkDatabase: DatabaseCheck): Readiness {
  const expected = expectedVersion();
  return async (deadline) => {
    const isReady = isCurrent(await gate.readVersion(deadline), expected);
    // At once: a cell that is silent takes most of the time.
    const [cells] = await Promise.all([gate.readCells(deadline), isReady ? checkDatabase(deadline) : null]);
    if (gate.isDiskFull()) throw new Unavailable("the disk of the database is full");
    const otherCells = cells.filter(({ version }) => version === null || !isCurrent(version, expected));
    if (cells.length > 0 && otherCells.length === cells.length) throw new Unavailable("no cell is ready");
    return { isReady, otherCells: otherCells.map(({ cell }) => cell) };
  };
}

async function serveAlone(): Promise<void> {
  const config = readConfig();
  const address = findAddress(config);
  const keys = loadMasterKeys(config);
  const log = createLog(config.logLevel);
  const running = stopOnSignal(log);
  const listening = await listen(config, log);
  await loadEncryption();
  const metrics = await startMetrics(config, log, readBuild());
  if (metrics !== null) running.push(metrics);
  const { limits, docs: hasDocs } = config;
  const consoleUrl = findConsoleUrl(config.console);
  running.push(await serve({ address, keys, limits, consoleUrl, hasDocs, listening, log, metrics }));
  log.info({ url: listening.url, metrics_url: metrics?.url }, "serving");
}

export const command = defineCommand({
  name: "serve",
  about:
    "Serves the HTTP API. Any number of these processes may run on a migrated database. Ctrl-C or SIGTERM stops it: " +
    "it finishes the open requests first, within 10 s.",
  settings: [...programSettings, ...serveSettings],
  examples: ["", "PORT=8081 METRICS_PORT=9091"],
  exitCodes: "0 stopped by a signal, 1 failed",
  run: serveAlone,
});
