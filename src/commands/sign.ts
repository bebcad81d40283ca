// coupon sign shows how a request is signed, step by step, for integrators whose signature is refused. It sends nothing
// and needs no database. The secret is in a variable, because other users of the machine can see arguments.
import { readFile } from "node:fs/promises";
import { newRequestId } from "../../clients/typescript/src/index.ts";
import { defineCommand } from "../command-line/command.ts";
import { writeOutput } from "../command-line/output.ts";
import { readCredentialSecret } from "../config/config.ts";
import { createMac } from "../crypto/mac.ts";
import { authHeaders, headerForms, sign, stringToSign, type Signed } from "../crypto/request-signature.ts";

export function explainSignature(secret: string, accessKey: string | undefined, signed: Signed): string {
  const lines = stringToSign(signed);
  const bodyHash = lines.toString("latin1").split("\n")[4]!;
  const headers = {
    ...(accessKey !== undefined && { "x-svc-access-key": accessKey }),
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(createMac(secret), signed),
  };
  return [
    `1. SHA-256 of the body, ${signed.body.length} bytes:`,
    bodyHash,
    "",
    `2. String to sign, ${lines.length} bytes: five lines, a line feed after each:`,
    // As bytes, which the terminal shows as UTF-8.
    lines.toString("utf8"),
    `3. Headers. The signature is the HMAC-SHA256 of 2, keyed with the secret, ${Buffer.byteLength(secret)} bytes:`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
  ].join("\n");
}

function check(name: keyof typeof authHeaders, flag: string, value: string | undefined): string | null {
  return value === undefined || authHeaders[name].test(value) ? null : `${flag} must be ${headerForms[name]}`;
}

export const command = defineCommand({
  name: "sign",
  about:
    "Prints how a request is signed: the hash of its body, the string to sign and the headers. It sends nothing. " +
    "Compare it with what your own code makes, step by step.",
  words: {
    method: { about: "the method", choices: ["GET", "HEAD", "POST"] },
    target: { about: "path and query, exactly as on the request line: /v1/events?limit=10" },
  },
  flags: {
    body: { type: "text", value: "FILE", about: "the bytes of the body (no body)" },
    "access-key": { type: "text", value: "KEY", about: "adds the header of the access key, which is not signed" },
    timestamp: { type: "text", value: "SECONDS", about: "the time in Unix seconds (now)" },
    nonce: { type: "text", value: "NONCE", about: "the nonce (a new one)" },
  },
  settings: { CREDENTIAL_SECRET: "the secret of the credential" },
  examples: ["CREDENTIAL_SECRET=… POST /v1/coupons/lock --body body.json"],
  refuse({ words: { target }, flags }) {
    if (!/^(\/|https?:\/\/)[^\s\p{Cc}]*$/iu.test(target))
      return "TARGET must be path and query as on the request line, without blanks";
    return (
      check("x-svc-access-key", "--access-key", flags["access-key"]) ??
      check("x-svc-timestamp", "--timestamp", flags.timestamp) ??
      check("x-svc-nonce", "--nonce", flags.nonce)
    );
  },
  async run({ words: { method, target }, flags }) {
    const secret = readCredentialSecret();
    const { body, timestamp = String(Math.floor(Date.now() / 1000)), nonce = newRequestId() } = flags;
    const signed = {
      method,
      // A request line is bytes.
      target: Buffer.from(target).toString("latin1"),
      timestamp,
      nonce,
      body: body === undefined ? Buffer.alloc(0) : await readBody(body),
    };
    await writeOutput(explainSignature(secret, flags["access-key"], signed));
  },
});

async function readBody(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new Error(`--body cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
