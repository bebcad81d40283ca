// The signatures of the TypeScript client, with the published vectors.
import { readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { newNonce, newRequestId, sign } from "../../clients/typescript/src/signature.ts";
import { verify } from "../../src/crypto/request-signature.ts";
import { root } from "../support/copy.ts";

type Vector = { method: string; target: string; timestamp: string; nonce: string; body: string; signature: string };
const { secret, vectors } = JSON.parse(readFileSync(path.join(root, "test/vectors/signing.json"), "utf8")) as {
  secret: string;
  vectors: Vector[];
};

t.test("Every published vector is signed as published, and the service accepts it", (t) => {
  t.equal(vectors.length, 11);
  for (const vector of vectors) {
    const signed = { ...vector, body: Buffer.from(vector.body) };
    t.equal(sign(secret, signed), vector.signature, vector.target);
    t.ok(verify(secret, signed, sign(secret, signed)));
  }
  t.end();
});

t.test("A nonce and a request_id never look like a code: they have a u at least every 16 characters", (t) => {
  const made = Array.from({ length: 1_000 }, () => [newNonce(), newRequestId()]).flat();
  t.equal(new Set(made).size, 2_000);
  for (const one of made) if (!/^u[\w-]{15,}$/.test(one) || /[0-9a-tv-z]{16}/i.test(one)) t.fail(one);
  t.end();
});
