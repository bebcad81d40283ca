// A deployment as docs/docker.md shows it, on a real engine. Skipped where none runs. compose.test.ts checks the file.
import t, { type Test } from "tap";
import { fits } from "../support/fits.ts";
import { createClient } from "../support/signing-client.ts";
import { postOk } from "../support/client.ts";
import { collect, findMissing, killGroup, openDeployment, readSection, type Deployment } from "../support/docker.ts";
import { waitUntil } from "../support/wait-until.ts";

const section = (title: string): string => readSection(title, "bash")[0]!;
const compose = (args: string): string => `docker compose ${args}`;
const psql = (sql: string): string => compose(`exec -T database psql -U tool coupon -Atc "${sql}"`);
const document = JSON.stringify({
  tenants: [
    {
      id: "ten_acme",
      name: "Acme",
      variant: "A",
      parties: [{ id: "pty_maker", name: "Maker" }],
      merchants: [{ id: "mch_1", name: "Shop", party: "pty_maker" }],
      templates: [
        {
          id: "tpl_1",
          name: "5 off",
          maker: "pty_maker",
          currency: "EUR",
          discount: { type: "fixed", amount: 5 },
          valid_from: "2026-01-01T00:00:00Z",
          valid_to: "2099-01-01T00:00:00Z",
        },
      ],
      credentials: [{ access_key: "ak_acme" }],
    },
  ],
});

t.test(
  "a deployment starts without an error, shows no secret and no code, and takes any password",
  { skip: findMissing("postgres:18", "node:24-slim"), timeout: 900_000 },
  async (t) => {
    const deployment = await openDeployment(t);
    await checkStart(t, deployment);
    await checkSecrecy(t, deployment);
    await checkPasswords(t, deployment);
  },
);

async function checkStart(t: Test, deployment: Deployment): Promise<void> {
  await deployment.runOk(section("Start"));
  await deployment.untilHealthy("database", "serve", "work");
  const states = (await deployment.list()).map(({ service, state }) => `${service} ${state}`).sort();
  t.strictSame(states, [
    "database running healthy",
    "logins exited 0",
    "migrate exited 0",
    "serve running healthy",
    "work running healthy",
  ]);
  const logs = await deployment.runOk(compose("logs --no-color"));
  t.match(logs, /serve-1 .*"msg":"serving"/);
  t.strictSame(
    logs.split("\n").filter((line) => /\b(ERROR|FATAL|PANIC|WARNING|warning)\b|"level":[456]0/.test(line)),
    [],
    "a healthy start logs no error and no warning",
  );
  const settings =
    "select current_setting(name) from unnest(array['shared_buffers', 'max_wal_size', 'checkpoint_timeout']) name";
  t.equal(await deployment.runOk(psql(settings)), "1GB\n4GB\n30min\n");
}

async function checkSecrecy(t: Test, deployment: Deployment): Promise<void> {
  const foreground = deployment.start(compose("up"));
  const [stdout, stderr] = [collect(foreground.stdout!), collect(foreground.stderr!)];
  const output = (): string => stdout.join("") + stderr.join("");
  await waitUntil("up to follow the logs", () => /^Attaching to .*serve-1/m.test(output()));

  const applied = JSON.parse(await deployment.runOk(compose("run --rm -T tool apply -"), document));
  const { access_key: accessKey, secret } = applied.generated_secrets.credentials[0];
  const client = createClient({ url: deployment.url, accessKey, secret });
  const { batch } = await postOk(client, "/v1/batches", { request_id: "b1", template: "tpl_1", total_count: 3 });
  await waitUntil("the batch to be minted", async () => {
    const { json } = await client.get(`/v1/batches/${batch.external_id}`);
    return json.batch.status === "COMPLETED";
  });
  await postOk(client, "/v1/batches/allocate", { request_id: "r1", batch: batch.external_id });
  const csv = await deployment.runOk(compose(`run --rm -T tool codes ${batch.external_id}`));
  const codes = [...csv.matchAll(/,(\w{16})$/gm)].map(([, code = ""]) => code);
  t.equal(codes.length, 3);
  await postOk(client, "/v1/coupons/redeem", {
    request_id: "r2",
    coupon: codes[0],
    merchant: "mch_1",
    order_amount: 20,
  });

  await waitUntil("the last call in the output of up", () => output().includes('"request_id":"r2"'));
  killGroup(foreground);
  const logs = await deployment.runOk(compose("--profile tool logs --no-color"));
  for (const text of [secret, ...codes]) {
    t.notOk(output().includes(text), "neither the output of up");
    t.notOk(logs.includes(text), "nor a log holds a secret or a code");
  }
  t.equal(await deployment.runOk(compose("run --rm -T tool webhooks status")), "none\n");
}

async function checkPasswords(t: Test, deployment: Deployment): Promise<void> {
  const special = "/#?%41@:$x\"'\\ ";
  for (const name of ["POSTGRES_PASSWORD", "SERVE_PASSWORD", "WORK_PASSWORD"]) {
    deployment.setValue(name, `${name[0]}${special}`);
  }
  fits(t, await deployment.run(section("Upgrade")), { code: 0 }, "migrate needs no password");
  await deployment.untilHealthy("serve", "work");
  const quoted = `P${special}`.replaceAll("'", "'\\''");
  const asPostgres = `exec -T -e 'PGPASSWORD=${quoted}' database psql -h database -U postgres -Atc 'select 1' coupon`;
  t.equal(await deployment.runOk(compose(asPostgres)), "1\n", "logins has set it");
}
