// The whole service in one process, with an embedded PostgreSQL unless DATABASE_URL is set.
import { checkKeys, withAdminDatabase } from "./commands/admin-database.ts";
import { loadDemoTenants } from "./commands/demo-tenants.ts";
import { formatGreeting, formatInvitation } from "./commands/greeting.ts";
import { defineCommand } from "./command-line/command.ts";
import { readConfig } from "./config/config.ts";
import { defaultConsoleUrl } from "./config/console.ts";
import { openConsole } from "./console.ts";
import { createLog } from "./common/log.ts";
import { startMetrics } from "./server/metrics-server.ts";
import { stopOnSignal } from "./common/program.ts";
import { consoleSettings, programSettings, serveSettings, workSettings } from "./config/settings.ts";
import { loadOrMakeMasterKeys } from "./embedded/load-keys.ts";
import { startEmbedded } from "./embedded/server.ts";
import { loadEncryption } from "./crypto/public-key.ts";
import { listen } from "./http/listener.ts";
import { migrate } from "./migration/migrate.ts";
import { readBuild } from "./migration/version.ts";
import { serve } from "./serve.ts";
import { work } from "./work.ts";

async function startAll(): Promise<void> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const running = stopOnSignal(log);
  // The ports come first, so a start that finds one of them taken makes no database and changes none.
  const listening = await listen(config, log);
  await loadEncryption();
  const metrics = await startMetrics(config, log, readBuild());
  if (metrics !== null) running.push(metrics);
  const pages = await openConsole(config.console, log);

  const keys = loadOrMakeMasterKeys(config);
  let { address } = config;
  if (address === null) {
    const embedded = await startEmbedded(config.dataDir, {}, log);
    running.push(embedded);
    address = embedded.address;
  }
  await migrate(address, (line) => log.info(line));
  await withAdminDatabase(address, "coupon demo tenants", async (admin) => {
    await checkKeys(admin, keys);
    await loadDemoTenants(admin, keys, config.dataDir);
  });
  // A stop ends what was added last first: the tills, then the pages, then the database.
  if (pages !== null) running.push(pages);
  running.push(await work({ address, keys, config, log, metrics }));
  const { limits, docs: hasDocs } = config;
  const consoleUrl = config.console.url ?? pages?.url ?? defaultConsoleUrl;
  running.push(await serve({ address, keys, limits, consoleUrl, hasDocs, listening, log, metrics }));
  // Without its pages, the tills go on.
  const link = await pages?.serve({ address, keys }).catch((error: unknown) => {
    log.error({ err: error }, "the console cannot serve");
  });
  log.info({ url: listening.url, metrics_url: metrics?.url, console_url: pages?.url }, "serving and working");
  console.log(formatGreeting(listening.url, config.dataDir));
  if (pages !== null && link !== undefined) console.log(formatInvitation(pages.url, link));
}

export const command = defineCommand({
  name: "start",
  about:
    "Runs the whole service in one process. It migrates the database, serves the HTTP API and the console, and does " +
    "the background work. Without DATABASE_URL it runs an embedded PostgreSQL in DATA_DIR. The first start creates " +
    "two demo tenants. Each start prints a signed call to copy, and a link that signs in to the console once. " +
    "CONSOLE_PORT=off leaves the console out. Ctrl-C or SIGTERM stops it and keeps the data.",
  settings: [...programSettings, ...serveSettings, ...workSettings, ...consoleSettings],
  examples: ["", "PORT=9000 CONSOLE_PORT=off DATA_DIR=/srv/coupon"],
  exitCodes: "0 stopped by a signal, 1 failed",
  run: startAll,
});
