// `npm run serve`: the HTTP side. Several processes may run at once, because none holds state that must survive.
import { toNodeHandler } from "h3";
import { createApp } from "./http/app.ts";
import { routes } from "./http/routes/table.ts";
import { defaultLimits, readConfig, type Config } from "./common/config.ts";
import { connect } from "./database/connect.ts";
import type { Address } from "./common/database-address.ts";
import { findAddress } from "./embedded/find-address.ts";
import { connectionCount } from "./gate/connections.ts";
import { createGate } from "./gate/gate.ts";
import { loadMasterKeys, type MasterKeys } from "./crypto/keys.ts";
import { createLog, type Logger } from "./common/log.ts";
import { startMetrics, type Metrics } from "./common/metrics-server.ts";
import { observeServe } from "./http/metrics.ts";
import { expectedVersion } from "./migration/db-files.ts";
import { isProgram, onStop, runProgram } from "./common/program.ts";
import { listen, type Handler, type Listening, type Refused } from "./http/listener.ts";

const askWithinMs = 2_000;

export type Service = { url: string; stop(): Promise<void> };
export type ServeParts = {
  metrics?: Metrics | null;
  address: Address;
  keys: MasterKeys;
  config: Pick<Config, "host" | "port"> & Partial<Pick<Config, "limits">>;
  log: Logger;
};

export async function serve({ address, keys, config, log, metrics = null }: ServeParts): Promise<Service> {
  const observed = metrics === null ? null : observeServe(metrics);
  const observer = observed?.observer;
  const gate = createGate({
    log,
    ...(observer !== undefined && { onGroup: observer.grouped }),
    connect: () =>
      connect(address, {
        role: "coupon_api",
        name: "coupon serve",
        max: connectionCount,
        statementTimeoutMs: 3_000,
        lockTimeoutMs: 2_000,
      }),
  });
  const expected = expectedVersion();
  // A database one version ahead is still ready: functions that programs call stay for one version (docs/database.md,
  // "Change the schema"). An older database is not.
  const readiness = async (deadline: number) => {
    const { migration, code } = await gate.readVersion(deadline);
    return migration >= expected.migration && code.split(" ").includes(expected.code);
  };
  const { host, port, limits = defaultLimits } = config;
  const load = { openRequests: 0 };
  const app = createApp({
    routes,
    gate,
    keys,
    log,
    limits,
    load,
    readiness,
    ...(observer !== undefined && { observer }),
  });
  const onRefused = (refused: Refused) => {
    log.info(refused);
    observer?.answered(null, refused.status, refused.code, 0);
  };
  let listening: Listening;
  try {
    listening = await listen(toNodeHandler(app) as Handler, {
      host,
      port,
      limits,
      onRefused,
      onDropped: () => observer?.refused("connections"),
    });
  } catch (error) {
    await gate.end();
    throw error;
  }
  observed?.show({ openRequests: () => load.openRequests, connections: listening.connections, gate: gate.load });
  metrics?.watch({ program: "serve", ask: async () => void (await gate.readVersion(performance.now() + askWithinMs)) });
  return {
    url: listening.url,
    async stop() {
      await listening.stop();
      await gate.end();
    },
  };
}

async function main(): Promise<void> {
  const config = readConfig();
  const keys = loadMasterKeys(config);
  const log = createLog(config.logLevel);
  const metrics = await startMetrics(config, log);
  const service = await serve({ address: findAddress(config), keys, config, log, metrics });
  onStop(async () => {
    await service.stop();
    await metrics?.stop();
  });
  log.info({ url: service.url }, "serving");
}

if (isProgram(import.meta)) await runProgram(main);
