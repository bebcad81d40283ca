// Wrong, missing and lost master keys, noticed by the real programs before they do anything. And the documented
// rotation, which works while programs with the old and the new list run.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import t, { type Test } from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { defaultLimits, readConfig } from "../../src/common/config.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { openSession } from "../../src/database/connect.ts";
import { loadMasterKeys } from "../../src/embedded/load-keys.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { work } from "../../src/work.ts";
import { postOk, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { createClient } from "../support/signing-client.ts";
import { environmentOf, exitCodeOf, spawnProgram, untilPrinted, type Result } from "../support/program.ts";
import { secretOf } from "../support/tenants.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";

const newKey = () => randomBytes(32).toString("base64");
const envOf = (service: Running, masterKeyText: string) => environmentOf({ ...service, masterKeyText });

function start(
  t: Test,
  name: string,
  env: Record<string, string>,
  args: string[] = [],
): ChildProcessWithoutNullStreams {
  const program = spawnProgram(name, { env, args }) as ChildProcessWithoutNullStreams;
  program.stdin.end();
  t.teardown(() => program.kill("SIGKILL"));
  return program;
}

// Runs a program that should end by itself. One that is still running after 60 s is killed, and its code is null.
async function run(t: Test, name: string, env: Record<string, string>, args: string[] = []): Promise<Result> {
  const program = start(t, name, env, args);
  const timer = setTimeout(() => program.kill("SIGKILL"), 60_000);
  const [stdout, stderr] = await Promise.all([text(program.stdout), text(program.stderr)]);
  clearTimeout(timer);
  return { code: await exitCodeOf(program), stdout, stderr };
}

async function submit(url: string, count: number): Promise<string> {
  const by = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: count };
  return (await postOk(by, "/v1/batches", body)).batch.external_id as string;
}

async function readBatch({ owner }: Running, id: string) {
  const [batch] = await owner.rows<{ status: string; key_version: string; minted_count: number }>(
    "select status, key_version, minted_count from core.batch where external_id = $1",
    [id],
  );
  return batch!;
}

const untilMinted = (service: Running, id: string) =>
  waitUntil(`the coupons of ${id}`, async () => (await readBatch(service, id)).status === "COMPLETED");

async function startServe(t: Test, env: Record<string, string>) {
  const program = start(t, "serve", env);
  const [, url = ""] = await untilPrinted(program, /"url":"([^"]+)"/);
  return { program, url };
}

// Every program that uses keys, with arguments that would work.
function listPrograms(batch: string, file: string): Record<string, string[]> {
  return {
    start: [],
    serve: [],
    work: [],
    apply: [file],
    codes: [batch, "--unreleased"],
    webhooks: ["status"],
  };
}

t.test("with another key or without a key in use, no program starts, and nothing is minted or stored", async (t) => {
  const service = await startService(t);
  const { id: printed } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2, { isReleased: false });
  const pending = await submit(service.url, 10);
  const file = path.join(t.testdir(), "file.json");
  writeFileSync(
    file,
    JSON.stringify({ tenants: [{ id: "ten_new", name: "New", variant: "A", amount_unit: "major" }] }),
  );
  const wrong = {
    [newKey()]: "COUPON_MASTER_KEY: key 1 is not the one this database was used with\n",
    [`2:${newKey()},1:${newKey()}`]: "COUPON_MASTER_KEY: key 1 is not the one this database was used with\n",
    [`2:${newKey()}`]: "COUPON_MASTER_KEY: key 1 is missing, but codes or secrets in this database were made with it\n",
  };
  for (const [masterKeyText, message] of Object.entries(wrong)) {
    for (const [name, args] of Object.entries(listPrograms(printed, file))) {
      const { code, stdout, stderr } = await run(t, name, envOf(service, masterKeyText), args);
      t.strictSame({ code, stderr }, { code: 1, stderr: message }, name);
      if (code === null) return;
      t.notMatch(stdout, /cpn_|working|serving|Listening/, name);
    }
  }
  fits(t, await readBatch(service, pending), { status: "PENDING", minted_count: 0 });
  t.strictSame([...(await service.owner.rows("select from core.tenant where external_id = 'ten_new'"))], []);
  t.strictSame([...(await service.owner.rows("select version from core.master_key"))], [{ version: "1" }]);
});

t.test("serve and work that refuse their keys close their connections", async (t) => {
  const service = await startService(t);
  // A login of their own, because the running service may open connections too.
  const [login, password] = [`coupon_keys_${newRequestId()}`, newRequestId()];
  const superuser = openSession(service.address, { name: "coupon test" });
  await superuser.rows(`create role "${login}" superuser login password '${password}'`);
  t.teardown(async () => {
    await superuser.rows(`drop role "${login}"`);
    await superuser.end();
  });
  const isClosed = async () => {
    const sessions = await superuser.rows("select from pg_stat_activity where usename = $1", [login]);
    return sessions.length === 0;
  };
  const address = { ...service.address, user: login, password };
  const { logger: log } = createStubLog();
  const parts = { address, keys: parseMasterKeys(`1:${newKey()}`), limits: defaultLimits, log };
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
  t.teardown(() => listening.stop());
  await t.rejects(serve({ ...parts, listening }), { name: "ConfigError" });
  await waitUntil("serve to close its connections", isClosed);
  await t.rejects(work({ ...parts, config: readConfig({}) }), { name: "ConfigError" });
  await waitUntil("work to close its connections", isClosed);
});

t.test("/readyz of a running program is 503 while the database has another key, and the log names it", async (t) => {
  const service = await startService(t);
  const { program, url } = await startServe(t, envOf(service, service.masterKeyText));
  let log = "";
  program.stdout.on("data", (chunk) => {
    log += chunk;
  });
  // Not ready either while the database is slow.
  const isReady = async () => (await sendPlain(url, "GET", "/readyz")).status === 200;
  await waitUntil("the program to be ready", isReady);
  // As after a restore of another environment's backup into this database.
  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  const flip = () =>
    superuser.run(`begin; set local session_replication_role = replica;
      update core.master_key set fingerprint = set_byte(fingerprint, 0, 255 - get_byte(fingerprint, 0)); commit`);
  await flip();
  fits(t, await sendPlain(url, "GET", "/readyz"), { status: 503, json: { code: "UNAVAILABLE" } });
  const reason = '"reason":"COUPON_MASTER_KEY: key 1 is not the one this database was used with"';
  await waitUntil("the reason in the log", () => log.includes(reason));
  t.equal((await sendPlain(url, "GET", "/healthz")).status, 200);
  await flip();
  await waitUntil("the program to be ready again", isReady);
  program.kill("SIGTERM");
  t.equal(await exitCodeOf(program), 0);
});

t.test("a deleted key file beside an embedded database is not replaced; the restored file works again", async (t) => {
  const folder = useTemporaryFolder(t, "coupon-keys-");
  const dataDir = path.join(folder, "data");
  const file = path.join(dataDir, "master.key");
  const env = { DATA_DIR: dataDir, PORT: "0" };
  const stop = async (program: ChildProcessWithoutNullStreams) => {
    program.kill("SIGTERM");
    t.equal(await exitCodeOf(program), 0);
  };
  const first = start(t, "start", env);
  await untilPrinted(first, /Listening on/);
  const [content, backup] = [readFileSync(file, "utf8"), path.join(folder, "backup")];
  renameSync(file, backup);
  const refusal = new RegExp(`^${file} is missing, .*restore the file from your backup.*\\n$`);
  for (const [name, args] of Object.entries({ webhooks: ["status"], serve: [], work: [] }))
    fits(t, await run(t, name, env, args), { code: 1, stdout: "", stderr: refusal }, `${name} beside npm start`);
  await stop(first);
  fits(t, await run(t, "start", env), { code: 1, stdout: "", stderr: refusal });
  t.notOk(existsSync(file), "no key was made");

  writeFileSync(file, `${newKey()}\n`);
  fits(t, await run(t, "start", env), {
    code: 1,
    stderr: `${file}: key 1 is not the one this database was used with\n`,
  });
  rmSync(file);
  renameSync(backup, file);
  await stop(await startAgain(t, env));
  t.equal(readFileSync(file, "utf8"), content);
  t.equal(loadMasterKeys({ masterKeyText: null, address: null, dataDir }).source, file);
});

async function startAgain(t: Test, env: Record<string, string>): Promise<ChildProcessWithoutNullStreams> {
  const program = start(t, "start", env);
  await untilPrinted(program, /Listening on/);
  return program;
}

t.test("a rotation: programs with the old list keep working beside programs with both keys", async (t) => {
  const service = await startService(t);
  const [oldEnv, newEnv] = [
    envOf(service, service.masterKeyText),
    envOf(service, `2:${newKey()},1:${service.masterKeyText}`),
  ];
  const old = await startServe(t, oldEnv);
  await untilPrinted(start(t, "work", oldEnv), /working/);
  const rotated = await startServe(t, newEnv);
  fits(t, await run(t, "webhooks", oldEnv, ["status"]), { code: 0 }, "nothing is made with key 2 yet: old lists start");

  const work = start(t, "work", newEnv);
  await untilPrinted(work, /working/);
  const [first, ...later] = [
    await submit(old.url, 5),
    await submit(rotated.url, 5),
    await submit(rotated.url, 5),
    await submit(rotated.url, 5),
  ];
  for (const id of [first!, ...later]) await untilMinted(service, id);
  t.equal((await readBatch(service, first!)).key_version, "1");
  for (const id of later) t.equal((await readBatch(service, id)).key_version, "2", "minted by the worker with key 2");
  for (const { url } of [old, rotated]) t.equal((await sendPlain(url, "GET", "/readyz")).status, 200, "both are ready");

  const codes = (await Array.fromAsync(exportCodes(service.admin, service.keys, first!, true))).flat();
  for (const [index, { url }] of [old, rotated].entries()) {
    const by = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
    await postOk(by, "/v1/coupons/query", { coupon: codes[index]!.code, merchant: "mch_a" });
  }
  fits(t, await run(t, "codes", newEnv, [later[0]!, "--unreleased"]), { code: 0, stdout: /,2\w{15}\n/ });
  fits(t, await run(t, "codes", oldEnv, [first!, "--unreleased"]), {
    code: 1,
    stdout: "",
    stderr: "COUPON_MASTER_KEY: key 2 is missing, but codes or secrets in this database were made with it\n",
  });
});
