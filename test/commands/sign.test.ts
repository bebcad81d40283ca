// coupon sign: what it prints for the signed requests that every client must reproduce, and what it refuses.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { UsageError } from "../../src/command-line/command.ts";
import { command } from "../../src/commands/sign.ts";
import { ConfigError, readCredentialSecret } from "../../src/config/config.ts";
import { fits } from "../support/fits.ts";
import { runProgram } from "../support/program.ts";

type Field = "method" | "target" | "body" | "timestamp" | "nonce" | "body_sha256" | "string_to_sign" | "signature";

const file = new URL("../vectors/signing.json", import.meta.url);
const { secret, vectors } = JSON.parse(readFileSync(file, "utf8")) as {
  secret: string;
  vectors: Record<Field, string>[];
};
const run = (args: string[], env: Record<string, string> = { CREDENTIAL_SECRET: secret }) =>
  runProgram("sign", { args, env });

t.test("It prints hash, string to sign and headers of an example, with a query or bytes of a body", async (t) => {
  const body = path.join(t.testdir(), "body");
  // test/crypto/secrets.test.ts signs them all.
  const some = vectors.filter(({ target, body }) => target.endsWith("&limit=7") || /[^ -~]/.test(body));
  t.strictSame([...new Set(some.map(({ body }) => body === ""))], [true, false]);
  for (const vector of some) {
    writeFileSync(body, vector.body);
    const { method, target, timestamp, nonce } = vector;
    const args = [method, target, "--timestamp", timestamp, `--nonce=${nonce}`, "--access-key", "ak_1"];
    const { code, stdout } = await run(vector.body === "" ? args : [...args, "--body", body]);
    t.equal(code, 0);
    const [hash, lines, headers] = stdout.split(/^\d\. .*:\n/m).slice(1);
    t.strictSame([hash, lines], [`${vector.body_sha256}\n\n`, `${vector.string_to_sign}\n`], target);
    const expected = [
      "access-key: ak_1",
      `timestamp: ${timestamp}`,
      `nonce: ${nonce}`,
      `signature: ${vector.signature}`,
    ];
    t.equal(headers, expected.map((line) => `x-svc-${line}\n`).join(""));
  }
});

t.test(
  "Without timestamp and nonce it takes the time and a new nonce; without an access key it prints none",
  async (t) => {
    const { stdout } = await run(["GET", "/v1/events"]);
    t.match(stdout, /^x-svc-timestamp: \d{10}\nx-svc-nonce: u\w{25}\nx-svc-signature: [0-9a-f]{64}\n$/m);
    t.notMatch(stdout, /access-key/);
    t.notOk(stdout.includes(secret), "the secret is not printed");
  },
);

t.test("It refuses what no request can have, and needs the secret in its variable", async (t) => {
  const wrong: Record<string, string[]> = {
    "METHOD must be one of": ["get", "/v1/events"],
    "TARGET must be": ["GET", "v1/events"],
    "TARGET must be path": ["GET", "/v1/ events"],
    "--timestamp must be exactly 10 digits": ["GET", "/", "--timestamp", "1"],
    "--nonce must be 16 to 64": ["GET", "/", "--nonce", "short"],
    "--access-key must be 1 to 128": ["GET", "/", "--access-key", "a b"],
  };
  for (const [message, args] of Object.entries(wrong)) {
    t.throws(() => command.read(args), UsageError);
    t.throws(() => command.read(args), { message: new RegExp(`^${message}`) });
  }
  const missing = await run(["GET", "/", "--body", "/none/at/all"]);
  fits(t, missing, { code: 1, stdout: "", stderr: /^--body cannot be read: ENOENT/ });
  for (const text of [undefined, "x".repeat(31), "x".repeat(257), `${"x".repeat(32)}\n`])
    t.throws(() => readCredentialSecret(text === undefined ? {} : { CREDENTIAL_SECRET: text }), ConfigError);
  for (const text of ["x".repeat(32), ` ${"x".repeat(254)} `])
    t.equal(readCredentialSecret({ CREDENTIAL_SECRET: text }), text);
});
