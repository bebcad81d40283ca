// npm run credentials: what an operator sees of credentials, and how one is replaced without a pause.
import t from "tap";
import { environmentOf, runProgram } from "../support/program.ts";
import { fits } from "../support/fits.ts";
import { createClient } from "../support/client.ts";
import { scenario } from "../support/scenario.ts";
import { listen } from "../../src/http/listener.ts";
import { defaultLimits } from "../../src/config/config.ts";
import { serve } from "../../src/serve.ts";
import { secretOf } from "../support/tenants.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const service = await scenario(t, { http: true });
const run = (...args: string[]) => runProgram("credentials", { args, env: environmentOf(service) });
const list = async (...args: string[]) => {
  const { stdout, stderr } = await run("list", ...args, "--json");
  return (stderr === "" ? JSON.parse(stdout) : stderr) as Record<string, string | null>[];
};
const statusOf = async (accessKey: string, secret: string) =>
  (await createClient({ url: service.url, accessKey, secret }).get("/v1/batches/bat_none")).status;

t.test(
  "rotate makes a credential of the same caller beside the old one; revoke ends one; both are audited",
  async (t) => {
    const rotated = await run("rotate", "ak_pos", "--reason", "yearly");
    t.equal(rotated.code, 0, rotated.stderr);
    const { access_key, secret } = JSON.parse(rotated.stdout) as { access_key: string; secret: string };
    t.equal(
      rotated.stderr,
      'ak_pos still works. Once nobody uses it: coupon credentials revoke ak_pos --reason "rotated"\n',
    );
    t.strictSame([await statusOf("ak_pos", secretOf("ak_pos")), await statusOf(access_key, secret)], [404, 404]);
    fits(
      t,
      (await list("ten_b")).filter(({ party }) => party === "pty_pos"),
      [
        { tenant: "ten_b", access_key: "ak_pos", revoked_at: null, last_used_at: null },
        { tenant: "ten_b", access_key, revoked_at: null, last_used_at: null },
      ],
    );
    const revoked = await run("revoke", "ak_pos", "--reason", "rotated");
    fits(t, revoked, { code: 0, stderr: "", stdout: /^revoked at 20[^ ]+Z\n$/ });
    t.strictSame([await statusOf("ak_pos", secretOf("ak_pos")), await statusOf(access_key, secret)], [401, 404]);
    const audits = await service.owner.rows(
      `select action, target, reason, details from report.audit where action like '%credential' order by audit_id`,
    );
    fits(t, audits, [
      {
        action: "rotate_credential",
        target: "ak_pos",
        reason: "yearly",
        details: { credential: { old: "ak_pos", new: access_key } },
      },
      { action: "revoke_credential", target: "ak_pos", reason: "rotated" },
    ]);
    t.notMatch(JSON.stringify(audits), secret);

    const inA = await run("rotate", "ak_a", "--reason", "yearly");
    const ofTenant = JSON.parse(inA.stdout) as { access_key: string; secret: string };
    t.equal(await statusOf(ofTenant.access_key, ofTenant.secret), 404, "in variant A too, where it has no party");
  },
);

t.test("an unknown credential, tenant or reason is refused, and a revoked one is not rotated", async (t) => {
  const revoked = "credential ak_other is revoked: make a new one with apply\n";
  await run("revoke", "ak_other", "--reason", "lost");
  fits(t, await run("rotate", "ak_other", "--reason", "why"), { code: 1, stdout: "", stderr: revoked });
  for (const command of ["rotate", "revoke"])
    fits(t, await run(command, "ak_none", "--reason", "why"), {
      code: 1,
      stdout: "",
      stderr: "no credential ak_none\n",
    });
  fits(t, await run("revoke", "ak_shop", "--reason", " "), { code: 1, stderr: /needs a reason/ });
  fits(t, await run("revoke", "ak_shop"), { code: 2, stderr: /--reason WHY is missing/ });
  t.equal(await list("ten_none"), "there is no tenant ten_none with a credential\n");
});

t.test("serve notes who called, in the background and once more when it stops", async (t) => {
  const { address, keys } = service;
  const { logger: log } = createStubLog();
  const lastUse = async (accessKey: string) => {
    const [row] = await service.owner.rows<{ is_now: boolean | null }>(
      `select last_used_at between now() - interval '2 hours' and now() as is_now
       from report.credential where access_key = $1`,
      [accessKey],
    );
    return row!.is_now;
  };
  const start = async (noteUsesEveryMs: number) => {
    const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
    const { url, stop } = await serve({ address, keys, limits: defaultLimits, listening, noteUsesEveryMs, log });
    const call = (accessKey: string, secret: string) =>
      createClient({ url, accessKey, secret }).get("/v1/batches/bat_none");
    return { call, stop };
  };
  const quick = await start(20);
  await quick.call("ak_maker", secretOf("ak_maker"));
  await quick.call("ak_dist", "a wrong secret of more than 32 characters");
  await waitUntil("the note", async () => (await lastUse("ak_maker")) === true);
  await quick.stop();
  t.equal(await lastUse("ak_dist"), null, "anyone can claim an access key");
  const slow = await start(3_600_000);
  await slow.call("ak_dist", secretOf("ak_dist"));
  t.equal(await lastUse("ak_dist"), null);
  await slow.stop();
  t.equal(await lastUse("ak_dist"), true);
});
