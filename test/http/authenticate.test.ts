// How often the database is asked for a credential, and which secret counts, on a clock that the test moves.
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { sign } from "../../clients/typescript/src/signature.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { credentialPurpose, seal } from "../../src/crypto/seal.ts";
import type { CredentialRow } from "../../src/gate/gate.ts";
import { createAuthenticator } from "../../src/http/authenticate.ts";
import { fits } from "../support/fits.ts";

const keys = parseMasterKeys(Buffer.alloc(32, 1).toString("base64"));
const startedAt = 1_800_000_000_000;
const unauthenticated = { name: "Problem", code: "UNAUTHENTICATED" };

// `secrets`: the credentials in the database. `asked`: the access keys that it was asked for.
function start(secrets: Record<string, string>) {
  const clock = { now: startedAt, uptime: 0 };
  const asked: string[] = [];
  const gate = {
    async findCredential(accessKey: string): Promise<CredentialRow | null> {
      asked.push(accessKey);
      const secret = secrets[accessKey];
      await nextTurn();
      if (secret === undefined) return null;
      const sealed_secret = seal(keys, credentialPurpose(accessKey), secret);
      return { tenant_id: 7, credential_id: 8, variant: "B", amount_unit: "minor", sealed_secret };
    },
  };
  const authenticate = createAuthenticator({ gate, keys, now: () => clock.now, uptime: () => clock.uptime });
  const send = (accessKey: string, secret: string, { secondsOff = 0, method = "POST" } = {}) => {
    const timestamp = String(Math.floor(clock.now / 1_000) + secondsOff);
    const signed = {
      method,
      target: "/v1/x",
      timestamp,
      nonce: randomBytes(12).toString("hex"),
      body: Buffer.from("{}"),
    };
    const headers = {
      "x-svc-access-key": accessKey,
      "x-svc-timestamp": timestamp,
      "x-svc-nonce": signed.nonce,
      "x-svc-signature": sign(secret, signed),
    };
    return authenticate({ method: "POST", target: "/v1/x", headers, body: signed.body }, clock.now + 1_000);
  };
  return { clock, asked, send, authenticate };
}

t.test("a signed request has its credential, which is looked up once and then remembered for 3 s", async (t) => {
  const { clock, asked, send } = start({ ak_a: "secret one" });
  const { credential, nonce } = await send("ak_a", "secret one");
  fits(t, credential, { accessKey: "ak_a", tenantId: 7, credentialId: 8, variant: "B", secret: "secret one" });
  t.match(nonce, /^[0-9a-f]{24}$/);
  clock.uptime += 2_999;
  await send("ak_a", "secret one");
  t.equal(asked.length, 1);
  clock.uptime += 1;
  await send("ak_a", "secret one");
  t.equal(asked.length, 2);
  clock.uptime += 3_000;
  clock.now -= 600_000;
  await send("ak_a", "secret one");
  t.equal(asked.length, 3, "also while the clock of the machine is set back");
});

t.test("requests at the same time share one lookup, whether the key is known or not", async (t) => {
  const { asked, send } = start({ ak_a: "secret one" });
  await Promise.all([1, 2, 3].map(() => send("ak_a", "secret one")));
  t.strictSame(asked, ["ak_a"]);
  const refused = await Promise.allSettled([1, 2, 3].map(() => send("ak_b", "any")));
  t.ok(refused.every(({ status }) => status === "rejected"));
  t.strictSame(asked, ["ak_a", "ak_b"]);
  await t.rejects(send("ak_b", "any"), unauthenticated);
  t.strictSame(asked, ["ak_a", "ak_b", "ak_b"], "an unknown key is not remembered");
});

t.test("a wrong signature costs one lookup; a replaced secret works at once, a remembered one for 3 s", async (t) => {
  const secrets: Record<string, string> = { ak_a: "secret one" };
  const { asked, send } = start(secrets);
  await t.rejects(send("ak_a", "wrong"), unauthenticated);
  t.equal(asked.length, 1);
  await t.rejects(send("ak_a", "wrong"), unauthenticated);
  t.equal(asked.length, 2, "as for an unknown key");
  await t.rejects(send("ak_a", "secret one", { method: "GET" }), unauthenticated);
  secrets["ak_a"] = "secret two";
  await send("ak_a", "secret one");
  t.equal((await send("ak_a", "secret two")).credential.secret, "secret two");
  await t.rejects(send("ak_a", "secret one"), unauthenticated, "the new one replaced it");
  delete secrets["ak_a"];
  await send("ak_a", "secret two");
  await t.rejects(send("ak_a", "wrong"), unauthenticated);
  await t.rejects(send("ak_a", "secret two"), unauthenticated, "its end is known since the last lookup");
});

t.test("a timestamp may be 300 s off; the refusal says what time it is, and only to who signed", async (t) => {
  const { send } = start({ ak_a: "secret one" });
  for (const secondsOff of [-300, 300]) await send("ak_a", "secret one", { secondsOff });
  for (const secondsOff of [-301, 301]) {
    await t.rejects(send("ak_a", "secret one", { secondsOff }), {
      code: "TIMESTAMP_OUT_OF_WINDOW",
      details: { server_time: new Date(startedAt).toISOString() },
    });
    await t.rejects(send("ak_a", "wrong", { secondsOff }), unauthenticated);
    await t.rejects(send("ak_b", "wrong", { secondsOff }), unauthenticated);
  }
});

t.test("without a signature nothing is looked up", async (t) => {
  const { asked, authenticate } = start({ ak_a: "secret one" });
  const headers = { "x-svc-access-key": "ak_a" };
  const request = { method: "POST", target: "/v1/x", headers, body: Buffer.from("{}") };
  await t.rejects(authenticate(request, startedAt + 1_000), unauthenticated);
  t.strictSame(asked, []);
});

t.test("10,000 credentials are remembered; then the oldest one is forgotten", async (t) => {
  const names = Array.from({ length: 10_001 }, (_, index) => `ak_${index}`);
  const { asked, send } = start(Object.fromEntries(names.map((name) => [name, "secret one"])));
  for (const name of names.slice(0, 10_000)) await send(name, "secret one");
  await send("ak_0", "secret one");
  t.equal(asked.length, 10_000);
  await send("ak_10000", "secret one");
  for (const name of ["ak_1", "ak_9999", "ak_10000"]) await send(name, "secret one");
  t.equal(asked.length, 10_001);
  await send("ak_0", "secret one");
  t.equal(asked.length, 10_002);
});
