// `coupon console`: pages for support, finance and operations, on a port of their own. Also inside `coupon start`.
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { toNodeHandler } from "h3/node";
import { defineCommand } from "./command-line/command.ts";
import { formatInvitation } from "./commands/greeting.ts";
import { createLog, type Logger } from "./common/log.ts";
import { stopOnSignal } from "./common/program.ts";
import type { Address } from "./config/database-address.ts";
import { ConfigError, readConfig, type Config } from "./config/config.ts";
import { consoleSettings, keySettings } from "./config/settings.ts";
import { createApp } from "./console/app.ts";
import { createDoors, type Doors } from "./console/doors.ts";
import { pages } from "./console/pages/table.ts";
import { createSessions, digest, type Session } from "./console/sessions.ts";
import type { MasterKeys } from "./crypto/keys.ts";
import { connect } from "./database/connect.ts";
import type { Database } from "./database/types.ts";
import { findAddress } from "./embedded/find-address.ts";
import { loadMasterKeys } from "./embedded/load-keys.ts";
import { refuseOtherDatabase } from "./migration/version.ts";
import { boundConnections } from "./server/connections.ts";
import { openPort } from "./server/open-port.ts";

const role = "coupon_console";
// However many pages are open, the tills keep the other connections and processors.
const connections = { max: 2, statementTimeoutMs: 10_000, lockTimeoutMs: 2_000 };
const mostClients = 200;
const linkMs = 3_600_000;
const times = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000 };

/** `url`: of its port, which answers 503 until it serves. */
export type Console = { url: string; serve(parts: ConsoleParts): Promise<string>; stop(): Promise<void> };
type ConsoleParts = { address: Address; keys: MasterKeys };
type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Opens the port. Returns null if there is to be none. `serve` then shows the pages, and returns a link that signs in
 * once. If it rejects, the port goes on with 503.
 */
export async function openConsole(config: Config["console"], log: Logger): Promise<Console | null> {
  const { host, port } = config;
  if (port === null) return null;
  const server = createServer({ maxHeaderSize: 16_384, ...times });
  const bounded = boundConnections(server, { most: mostClients });
  let answer: Answer = refuseForNow;
  let database: Database | null = null;
  let doors: Doors | null = null;
  server.on("request", async (request, response) => {
    if (!bounded.admit(request, response)) return;
    try {
      await answer(request, response);
    } catch (error) {
      // A page answers its own errors. One that it missed costs this request, not the program, which may have tills.
      log.error({ err: error }, "a page failed");
      response.destroy();
    }
  });
  const url = await openPort(server, { host, port, settings: { host: "CONSOLE_HOST", port: "CONSOLE_PORT" } });
  server.on("error", (error) => log.error({ err: error }, "the port of the console failed"));
  return {
    url,
    async serve({ address, keys }) {
      database = connect(address, { role, name: "coupon console", ...connections });
      await refuseOtherDatabase(database.rows);
      const token = randomBytes(32).toString("base64url");
      doors = createDoors({ pages, database, openPortal: (session) => connectPortal(address, session) });
      const app = createApp({
        doors,
        openAs: (name) => connect(address, { role, name: `coupon console ${name}`, ...connections, max: 1 }),
        sessions: createSessions({ database, keys, staff: config.tokens, link: { token, until: Date.now() + linkMs } }),
        keys,
        log,
        userHeader: config.userHeader,
      });
      answer = toNodeHandler(app);
      return `${url}/sign-in?link=${token}`;
    },
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      await database?.end();
      await doors?.end();
    },
  };
}

/** The database finds the session by what its connection carries. */
const connectPortal = (address: Address, session: Session): Database =>
  connect(address, {
    role: "coupon_portal",
    name: "coupon portal",
    settings: { "coupon.session": digest(session.token).toString("hex") },
    ...connections,
    max: 1,
  });

function refuseForNow(request: IncomingMessage, response: ServerResponse): void {
  const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", "retry-after": "2" };
  response.writeHead(503, headers).end("The console is starting. If this lasts, the log of the service says why.\n");
  // Node discards what still arrives of the body.
  request.resume();
}

async function runConsole(): Promise<void> {
  const config = readConfig();
  const address = findAddress(config);
  const keys = loadMasterKeys(config);
  const log = createLog(config.logLevel);
  const running = stopOnSignal(log);
  const opened = await openConsole(config.console, log);
  if (opened === null) throw new ConfigError("CONSOLE_PORT is off: set a port");
  running.push(opened);
  const link = await opened.serve({ address, keys });
  log.info({ url: opened.url }, "console");
  console.log(formatInvitation(opened.url, link));
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
