// The registered versions of the master key, as programs and administrators see them.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { fingerprintKeys, type KeyProblem } from "../../../src/crypto/key-fingerprint.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import { fits } from "../../support/fits.ts";
import { everyFunctionIsCalled, startPatches, type Patches } from "../../support/patches.ts";
import { tenants } from "../../support/tenants.ts";
import { untilBlocked } from "../../support/race.ts";
import type { Running } from "../../support/service.ts";

let patches: Patches;
let service: Running;
let own: Record<string, string>;
t.before(async () => {
  const [tenant] = structuredClone(tenants) as [any];
  tenant.parties[0].webhook = { url: "https://example.com/hook" };
  patches = await startPatches(t, [tenant]);
  ({ service } = patches);
  own = JSON.parse(fingerprintKeys(service.keys));
});

const newFingerprint = () => randomBytes(16).toString("hex");
const listVersions = async () =>
  (await service.owner.rows<{ version: string }>("select version from core.master_key order by 1")).map(
    ({ version }) => version,
  );

async function register(
  keys: Record<string, string | null>,
  by: Pick<Session, "rows"> = service.admin,
): Promise<KeyProblem[]> {
  const text = "select version, problem from rules.register_keys($1::text::jsonb)";
  return [...(await by.rows<KeyProblem>(text, [JSON.stringify(keys)]))];
}

t.test("a new version is registered once; another key of that version is refused and changes nothing", async (t) => {
  const second = newFingerprint();
  t.strictSame(await register({ ...own, 2: second }), []);
  t.strictSame(await register({ ...own, 2: second }), []);
  t.strictSame(await register({ ...own, 2: newFingerprint(), 3: newFingerprint() }), [
    { version: "2", problem: "DIFFERS" },
  ]);
  t.strictSame(await listVersions(), ["1", "2"], "a program that is refused registers nothing");
  t.strictSame(await register({ ...own, 2: second }), []);
  await patches.patch("forget_key", "2", "end of the test");
});

t.test("a key without a fingerprint is another key", async (t) => {
  t.strictSame(await register({ 1: null, 5: newFingerprint() }), [{ version: "1", problem: "DIFFERS" }]);
  t.strictSame(await listVersions(), ["1"]);
});

t.test("of two programs that register different keys of one version at once, the second is refused", async (t) => {
  const [first, second] = [1, 2].map(() => openSession(service.address, { name: "coupon test", role: "coupon_admin" }));
  t.teardown(() => Promise.all([first!.end(), second!.end()]));
  await first!.run("begin");
  t.strictSame(await register({ ...own, 4: newFingerprint() }, first), []);
  const later = register({ ...own, 4: newFingerprint() }, second);
  await untilBlocked(service, 1);
  await first!.run("commit");
  t.strictSame(await later, [{ version: "4", problem: "DIFFERS" }]);
  await patches.patch("forget_key", "4", "end of the test");
});

// Runs `act` in a transaction of a superuser without triggers, and rolls back.
async function pretend(t: Test, change: string, act: (session: Session) => Promise<void>): Promise<void> {
  const session = openSession(service.address, { name: "psql" });
  t.teardown(() => session.end());
  await session.run(`begin; set local session_replication_role = replica; ${change}`);
  await act(session);
  await session.run("rollback");
}

t.test("a version that nothing needs may be missing; a version is in use through a batch or a secret", async (t) => {
  await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2);
  const missing = [{ version: "1", problem: "MISSING" }];
  const unused = `
    update core.batch set valid_to = now() - interval '7 days', valid_from = '2020-01-01';
    update core.credential set revoked_at = now();
    update core.webhook set sealed_secret = overlay(sealed_secret placing '2'::bytea from 1)`;
  const replaced = (age: string) =>
    `insert into core.replaced_secret select tenant_id, party_id, now() - interval '${age}', '1' from core.webhook`;
  const isInUse = async (session: Session) =>
    (await session.rows<{ is_in_use: boolean }>("select is_in_use from report.master_key where version = '1'"))[0]!
      .is_in_use;
  const cases: Record<string, { change: string; problems: KeyProblem[] | typeof missing }> = {
    "everything ended": { change: "", problems: [] },
    "a lock of a batch that ended less than 7 days ago may still be confirmed": {
      change: "update core.batch set valid_to = now() - interval '6 days 23:59'",
      problems: missing,
    },
    "a coupon was extended": {
      change: `insert into core.coupon_extension
        select tenant_id, coupon_id, now() + interval '1 day' from core.coupon limit 1`,
      problems: missing,
    },
    "a credential": { change: "update core.credential set revoked_at = null", problems: missing },
    "a webhook": {
      change: "update core.webhook set sealed_secret = overlay(sealed_secret placing '1'::bytea from 1)",
      problems: missing,
    },
    "the previous secret of a webhook": {
      change: replaced("23:59"),
      problems: missing,
    },
    "a previous secret after 24 hours": {
      change: replaced("24 hours"),
      problems: [],
    },
  };
  for (const [name, { change, problems }] of Object.entries(cases)) {
    await pretend(t, `${unused}; ${change}`, async (session) => {
      t.equal(await isInUse(session), problems.length > 0, name);
      t.strictSame(await register({ 7: newFingerprint() }, session), problems, name);
    });
  }
  t.strictSame(await register({ 7: newFingerprint() }), missing);
  t.strictSame(await listVersions(), ["1"]);
});

t.test("forget_key removes a key that nothing was made with, and no other", async (t) => {
  const { patch, isRefused, refusesBadArguments } = patches;
  await register({ ...own, 5: newFingerprint() });
  await refusesBadArguments(t, "forget_key", ["5"], { 0: ["6", "", "55"] });
  await patch("forget_key", "5", "mistyped");
  const [audit] = await service.owner.rows("select * from core.audit order by audit_id desc limit 1");
  fits(t, audit, { action: "forget_key", target: "5", reason: "mistyped", tenant_id: null });
  t.strictSame(await listVersions(), ["1"]);
  await isRefused(t, "CP409", "forget_key", "1", "it made batches");
  await pretend(t, "delete from core.coupon; delete from core.batch", async (session) => {
    const refusal = session.rows("select admin.forget_key('1', 'secrets are sealed with it')");
    await t.rejects(refusal, { message: "codes or secrets were made with key 1, so it stays registered" });
  });
});

t.test("Every function of this file was called", (t) => everyFunctionIsCalled(t, patches, "keys"));
