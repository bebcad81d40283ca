// `coupon console`: pages for support, finance and operations, on a port of their own.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { toNodeHandler } from "h3/node";
import { defineCommand } from "./command-line/command.ts";
import { createLog, type Logger } from "./common/log.ts";
import { stopOnSignal } from "./common/program.ts";
import type { Address } from "./config/database-address.ts";
import { readConfig, type Config } from "./config/config.ts";
import { consoleSettings, keySettings } from "./config/settings.ts";
import { createApp } from "./console/app.ts";
import { createDoors } from "./console/doors.ts";
import { pages } from "./console/pages/table.ts";
import { createSessions, digest } from "./console/sessions.ts";
import type { MasterKeys } from "./crypto/keys.ts";
import { connect } from "./database/connect.ts";
import { readVersion } from "./database/read-version.ts";
import { findAddress } from "./embedded/find-address.ts";
import { loadMasterKeys } from "./embedded/load-keys.ts";
import { refuseOtherVersion } from "./migration/version.ts";
import { boundConnections } from "./server/connections.ts";
import { openPort } from "./server/open-port.ts";

const role = "coupon_console";
// However many pages are open, the tills keep the other connections and processors.
const connections = { max: 4, statementTimeoutMs: 10_000, lockTimeoutMs: 2_000 };
const mostClients = 200;
const times = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000 };

export type ConsoleParts = { address: Address; keys: MasterKeys; config: Omit<Config["console"], "url">; log: Logger };
/** `link`: signs in once. */
export type Console = { url: string; link: string; stop(): Promise<void> };

export async function startConsole({ address, keys, config, log }: ConsoleParts): Promise<Console> {
  const server = createServer({ maxHeaderSize: 16_384, ...times });
  const bounded = boundConnections(server, { most: mostClients });
  const settings = { host: "CONSOLE_HOST", port: "CONSOLE_PORT" };
  const url = await openPort(server, { host: config.host, port: config.port, settings });
  const database = connect(address, { role, name: "coupon console", ...connections });
  const endAll = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    await database.end();
    await doors.end();
  };
  try {
    await refuseOtherVersion(readVersion(database.rows));
  } catch (error) {
    await endAll();
    throw error;
  }
  const token = randomBytes(32).toString("base64url");
  const doors = createDoors({
    pages,
    database,
    openPortal: (session) =>
      connect(address, {
        role: "coupon_portal",
        name: "coupon portal",
        settings: { "coupon.session": digest(session.token).toString("hex") },
        ...connections,
        max: 1,
      }),
  });
  const app = createApp({
    doors,
    openAs: (name) => connect(address, { role, name: `coupon console ${name}`, ...connections, max: 1 }),
    sessions: createSessions({ database, keys, staff: config.tokens, link: token }),
    keys,
    log,
    userHeader: config.userHeader,
  });
  const handler = toNodeHandler(app);
  server.on("request", (request, response) => {
    if (bounded.admit(request, response)) void handler(request, response);
  });
  return { url, link: `${url}/sign-in?link=${token}`, stop: endAll };
}

async function runConsole(): Promise<void> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const running = stopOnSignal(log);
  const started = await startConsole({
    address: findAddress(config),
    keys: loadMasterKeys(config),
    config: config.console,
    log,
  });
  running.push(started);
  log.info({ url: started.url }, "console");
  console.log(`The console is at ${started.url}. This link signs in once:\n${started.link}`);
}

export const command = defineCommand({
  name: "console",
  about:
    "Serves pages about coupons, batches and webhooks to staff, on a port of its own. Whoever can reach it needs a " +
    "token of CONSOLE_TOKENS, or the link that it prints, which is good once. Each sign-in and each change from a " +
    "page is in report.audit.",
  settings: [...keySettings, "LOG_LEVEL", ...consoleSettings],
  examples: ["", "CONSOLE_PORT=9090"],
  exitCodes: "0 stopped by a signal, 1 failed",
  run: runConsole,
});
