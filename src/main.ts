// npm start: the whole service in one process, with an embedded PostgreSQL unless DATABASE_URL is set.
import { checkKeys, withAdminDatabase } from "./commands/admin-database.ts";
import { loadDemoTenants } from "./commands/demo-tenants.ts";
import { formatGreeting } from "./commands/greeting.ts";
import { readConfig } from "./common/config.ts";
import { createLog } from "./common/log.ts";
import { startMetrics } from "./common/metrics-server.ts";
import { onStop, runProgram } from "./common/program.ts";
import { loadOrMakeMasterKeys } from "./embedded/load-keys.ts";
import { startEmbedded } from "./embedded/server.ts";
import { migrate } from "./migration/migrate.ts";
import { serve } from "./serve.ts";
import { work } from "./work.ts";

await runProgram(async () => {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const keys = loadOrMakeMasterKeys(config);

  // A signal stops the parts that have started, in reverse order.
  const running: { stop(): Promise<void> }[] = [];
  onStop(async () => {
    for (const part of running.reverse()) await part.stop();
  });

  let { address } = config;
  if (address === null) {
    const embedded = await startEmbedded(config.dataDir);
    running.push(embedded);
    address = embedded.address;
  }
  await migrate(address, (line) => log.info(line));
  await withAdminDatabase(address, "coupon demo tenants", async (admin) => {
    await checkKeys(admin, keys);
    await loadDemoTenants(admin, keys, config.dataDir);
  });
  const metrics = await startMetrics(config, log);
  if (metrics !== null) running.push(metrics);
  running.push(await work({ address, keys, config, log, metrics }));
  const service = await serve({ address, keys, config, log, metrics });
  running.push(service);
  console.log(await formatGreeting(service.url, config.dataDir));
});
