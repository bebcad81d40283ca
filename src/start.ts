// The whole service in one process, with an embedded PostgreSQL unless DATABASE_URL is set.
import { checkKeys, withAdminDatabase } from "./commands/admin-database.ts";
import { loadDemoTenants } from "./commands/demo-tenants.ts";
import { formatGreeting } from "./commands/greeting.ts";
import { defineCommand } from "./command-line/command.ts";
import { readConfig } from "./config/config.ts";
import { findConsoleUrl } from "./config/console.ts";
import { createLog } from "./common/log.ts";
import { startMetrics } from "./server/metrics-server.ts";
import { stopOnSignal } from "./common/program.ts";
import { programSettings, serveSettings, workSettings } from "./config/settings.ts";
import { loadOrMakeMasterKeys } from "./embedded/load-keys.ts";
import { startEmbedded } from "./embedded/server.ts";
import { listen } from "./http/listener.ts";
import { migrate } from "./migration/migrate.ts";
import { serve } from "./serve.ts";
import { work } from "./work.ts";

async function startAll(): Promise<void> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const running = stopOnSignal(log);
  // Both ports come first, so a start that finds one of them taken makes no database and changes none.
  const listening = await listen(config, log);
  const metrics = await startMetrics(config, log);
  if (metrics !== null) running.push(metrics);

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
  running.push(await work({ address, keys, config, log, metrics }));
  const { limits, docs: hasDocs } = config;
  const consoleUrl = findConsoleUrl(config.console);
  running.push(await serve({ address, keys, limits, consoleUrl, hasDocs, listening, log, metrics }));
  log.info({ url: listening.url, metrics_url: metrics?.url }, "serving and working");
  console.log(formatGreeting(listening.url, config.dataDir));
}

export const command = defineCommand({
  name: "start",
  about:
    "Runs the whole service in one process. It migrates the database, serves the HTTP API and does the background " +
    "work. Without DATABASE_URL it runs an embedded PostgreSQL in DATA_DIR. The first start creates two demo " +
    "tenants and prints a signed call to copy. Ctrl-C or SIGTERM stops it and keeps the data.",
  settings: [...programSettings, ...serveSettings, ...workSettings],
  examples: ["", "PORT=9000 DATA_DIR=/srv/coupon"],
  exitCodes: "0 stopped by a signal, 1 failed",
  run: startAll,
});
