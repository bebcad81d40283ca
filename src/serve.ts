// npm run serve: the HTTP side. Many of these may run beside each other; none keeps anything that matters.
import { toNodeHandler } from "h3";
import { createApp } from "./app.ts";
import { readConfig, type Config } from "./config.ts";
import { connect, resolveAddress, type Address } from "./database.ts";
import { connectionCount, createGate } from "./gate.ts";
import { loadMasterKeys, type MasterKeys } from "./keys.ts";
import { createLog, type Logger } from "./log.ts";
import { expectedVersion } from "./migrate.ts";
import { isProgram, onStop, runProgram } from "./program.ts";
import { listen, type Handler, type Listening } from "./server.ts";

export type Service = { url: string; stop(): Promise<void> };
export type ServeParts = { address: Address; keys: MasterKeys; config: Pick<Config, "host" | "port">; log: Logger };

export async function serve({ address, keys, config, log }: ServeParts): Promise<Service> {
  const gate = createGate({
    log,
    connect: () => connect(address, { role: "coupon_api", name: "coupon serve", max: connectionCount, statementTimeoutMs: 3_000, lockTimeoutMs: 2_000 }),
  });
  const expected = expectedVersion();
  // A database that lacks something of this program is not ready for it. One that went on to the next version is: until the
  // one after that, all that this program calls is still there (db/README.md, "Changing it").
  const readiness = async (deadline: number) => {
    const { migration, code } = await gate.version(deadline);
    return migration >= expected.migration && code.split(" ").includes(expected.code);
  };
  const app = createApp({ gate, keys, log, readiness });
  let listening: Listening;
  try {
    listening = await listen(toNodeHandler(app) as Handler, config);
  } catch (error) {
    await gate.end();
    throw error;
  }
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
  const service = await serve({ address: await resolveAddress(config), keys, config, log });
  onStop(() => service.stop());
  log.info({ url: service.url }, "serving");
}

if (isProgram(import.meta)) await runProgram(main);
