// npm start: everything in one process, on an embedded PostgreSQL in DATA_DIR (or the one of DATABASE_URL).
import { readConfig, type Config } from "./common/config.ts";
import { connect } from "./database/connect.ts";
import type { Address } from "./common/database-address.ts";
import { demoFile, loadDemoTenants, readDemoSecrets } from "./commands/demo-tenants.ts";
import { startEmbedded } from "./embedded/server.ts";
import { loadMasterKeys, type MasterKeys } from "./crypto/keys.ts";
import { createLog } from "./common/log.ts";
import { startMetrics } from "./common/metrics-server.ts";
import { migrate } from "./migration/migrate.ts";
import { onStop, runProgram } from "./common/program.ts";
import { serve } from "./serve.ts";
import { work } from "./work.ts";

await runProgram(async () => {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const keys = loadMasterKeys(config);

  // What runs so far, ended in the opposite order; a signal during the start ends just that.
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
  await loadDemo(address, keys, config);
  const metrics = await startMetrics(config, log);
  if (metrics !== null) running.push(metrics);
  running.push(await work({ address, keys, config, log, metrics }));
  const service = await serve({ address, keys, config, log, metrics });
  running.push(service);
  console.log(await greeting(service.url, config));
});

async function loadDemo(address: Address, keys: MasterKeys, config: Config): Promise<void> {
  const database = connect(address, { name: "coupon demo tenants", role: "coupon_admin", max: 1 });
  try {
    await loadDemoTenants(database, keys, config.dataDir);
  } finally {
    await database.end();
  }
}

// A call that works when pasted into a shell, as often as one likes: it makes its own time, nonce and signature.
async function greeting(url: string, config: Config): Promise<string> {
  const isDemo = (await readDemoSecrets(config.dataDir)) !== null;
  const [accessKey, template] = isDemo ? ["ak_demo_a", "tpl_tenpercent"] : ["ak_YOURS", "tpl_YOURS"];
  const secret = isDemo
    ? `$(sed -n 's/.*"${accessKey}": "\\([^"]*\\)".*/\\1/p' '${demoFile(config.dataDir)}')`
    : "YOUR SECRET";
  return `
Listening on ${url}. One signed call to copy (creates a batch of 5 coupons):

  KEY=${accessKey}
  SECRET="${secret}"
  TIMESTAMP=$(date +%s)
  NONCE=$(openssl rand -hex 16)
  BODY='{"request_id":"'$NONCE'","template":"${template}","total_count":5}'
  HASH=$(printf %s "$BODY" | openssl dgst -sha256 -r | cut -d' ' -f1)
  SIGNATURE=$(printf 'POST\\n/v1/batches\\n%s\\n%s\\n%s\\n' "$TIMESTAMP" "$NONCE" "$HASH" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)
  curl -s ${url}/v1/batches -H 'content-type: application/json' -H "x-svc-access-key: $KEY" -H "x-svc-timestamp: $TIMESTAMP" \\
    -H "x-svc-nonce: $NONCE" -H "x-svc-signature: $SIGNATURE" -d "$BODY"; echo

A coupon's whole life, step by step: npm run demo
`;
}
