// The jobs of a worker reach their tasks, and what these report reaches its metrics.
import { runMigrations } from "graphile-worker";
import t from "tap";
import { readConfig } from "../../src/config/config.ts";
import { connect, formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { work } from "../../src/work.ts";
import { startReceiver } from "../support/receiver.ts";
import { openMetrics, scrape } from "../support/scrape.ts";
import { createStubLog } from "../support/stub.ts";
import { subscribe } from "../support/subscribers.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("each job does the task of its name, and the metrics count attempts and show the self-check", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const { address, keys, owner } = fixture.service;
  const metrics = await openMetrics(t);
  const { logger, log } = createStubLog();
  const config = readConfig({ WEBHOOK_ALLOW: "127.0.0.0/8" });
  await runMigrations({ connectionString: formatRoleUrl(address, "coupon_worker") });
  const worker = await work({ address, keys, config, log: logger, metrics });
  const login = connect(address, { name: "coupon test", role: "coupon_worker", max: 1 });
  const psql = openSession(address, { name: "psql" });
  t.teardown(() => Promise.all([worker.stop(), login.end(), psql.end()]));
  // No job comes by time from now on.
  const stopCrontab = "update graphile_worker._private_known_crontabs set last_execution = now() + interval '1 day'";
  await waitUntil("the crontab", async () => (await login.rows(`${stopCrontab} returning 1`)).length === 3);
  const listJobs = () => login.rows("select from graphile_worker.jobs");
  await waitUntil("jobs that came before", async () => (await listJobs()).length === 0);
  const isCheck = ({ msg }: { [field: string]: unknown }) => msg === "self-check: all invariants hold";
  const checksBefore = log.filter(isCheck).length;
  await psql.run(`set session_replication_role = replica;
    update core.nonce set seen_at = now() - interval '12 minutes';
    update core.request set recorded_at = now() - interval '91 days'`);
  const count = async () => {
    const [row] = await owner.rows<{ nonces: number; requests: number }>(
      "select (select count(*) from core.nonce)::int as nonces, (select count(*) from core.request)::int as requests",
    );
    return { ...row! };
  };
  const run = (task: string) => login.rows("select graphile_worker.add_job($1)", [task]);
  const { nonces, requests } = await count();
  t.ok(nonces > 0 && requests > 0, `${nonces} nonces, ${requests} requests`);
  await run("prune_old_rows");
  // A retry of create_batch is never forgotten, so its record stays.
  await waitUntil("old requests to go", async () => (await count()).requests < requests, { withinMs: 60_000 });
  t.equal((await count()).nonces, nonces);
  await run("prune_nonces");
  await waitUntil("old nonces to go", async () => (await count()).nonces === 0, { withinMs: 60_000 });
  t.equal(log.filter(isCheck).length, checksBefore);
  await run("check");
  await waitUntil("the self-check", () => log.filter(isCheck).length > checksBefore);
  await fixture.happen("pty_s1", 2);
  const taken = 'coupon_webhook_attempts_total{outcome="taken"}';
  await waitUntil("two attempts", async () => (await scrape(metrics)).get(taken) === 2);
  t.equal((await scrape(metrics)).get("coupon_invariants_broken"), 0);
});
