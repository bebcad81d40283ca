// Signatures of requests, with the published vectors, and the headers that carry them.
import { readFileSync } from "node:fs";
import { createHash, randomBytes } from "node:crypto";
import t from "tap";
import { sign } from "../../clients/typescript/src/signature.ts";
import { isInWindow, readAuthHeaders, stringToSign, verify, type Signed } from "../../src/crypto/request-signature.ts";
import { fits } from "../support/fits.ts";

type Vector = {
  method: string;
  target: string;
  timestamp: string;
  nonce: string;
  body: string;
  body_sha256: string;
  string_to_sign: string;
  signature: string;
};
const { secret, vectors } = JSON.parse(readFileSync(new URL("../vectors/signing.json", import.meta.url), "utf8")) as {
  secret: string;
  vectors: Vector[];
};

t.test("every published vector is signed and verified as published", async (t) => {
  t.ok(vectors.length >= 10);
  for (const vector of vectors) {
    const signed = { ...vector, body: Buffer.from(vector.body) };
    t.equal(createHash("sha256").update(signed.body).digest("hex"), vector.body_sha256);
    t.equal(stringToSign(signed).toString("latin1"), vector.string_to_sign, `${vector.method} ${vector.target}`);
    t.equal(sign(secret, signed), vector.signature);
    t.ok(verify(secret, signed, vector.signature));
  }
});

t.test("changing any single bit of the signed parts or of the signature fails", async (t) => {
  for (const vector of vectors.slice(0, 6)) {
    const signed: Signed = { ...vector, body: Buffer.from(vector.body) };
    let tried = 0;
    const refuse = (changed: Signed, signature: string, what: string) => {
      tried += 1;
      if (verify(secret, changed, signature))
        t.fail(`${what} of ${vector.method} ${vector.target} was changed and still verifies`);
    };
    for (const part of ["method", "target", "timestamp", "nonce"] as const) {
      for (const bytes of flipEach(Buffer.from(signed[part], "latin1")))
        refuse({ ...signed, [part]: bytes.toString("latin1") }, vector.signature, part);
    }
    for (const body of flipEach(Buffer.from(signed.body))) refuse({ ...signed, body }, vector.signature, "the body");
    for (const bytes of flipEach(Buffer.from(vector.signature, "hex")))
      refuse(signed, bytes.toString("hex"), "the signature");
    t.ok(tried > 500, `${tried} changes`);
  }
});

t.test("characters moved between the parts fail, and so does another secret", async (t) => {
  const signed: Signed = { ...vectors[0]!, body: Buffer.from(vectors[0]!.body) };
  const { signature } = vectors[0]!;
  t.notOk(verify(secret, { ...signed, target: `${signed.target}\n`, timestamp: signed.timestamp }, signature));
  t.notOk(
    verify(
      secret,
      { ...signed, target: signed.target + signed.timestamp[0]!, timestamp: signed.timestamp.slice(1) },
      signature,
    ),
  );
  t.notOk(verify(`${secret}x`, signed, signature));
  t.notOk(verify(secret, signed, signature.slice(0, 62)));
  t.notOk(verify(secret, signed, ""));
});

t.test("random requests verify with their own signature only", async (t) => {
  const make = (): Signed => ({
    method: "POST",
    target: `/v1/${randomBytes(4).toString("hex")}`,
    timestamp: "1781985600",
    nonce: randomBytes(12).toString("hex"),
    body: randomBytes(40),
  });
  for (let round = 0; round < 200; round += 1) {
    const [one, other] = [make(), make()];
    if (!verify(secret, one, sign(secret, one))) t.fail("does not verify with its own signature");
    if (verify(secret, one, sign(secret, other))) t.fail("verifies with another signature");
  }
});

t.test("headers are accepted only if all are present and well-formed", async (t) => {
  const good = {
    "x-svc-access-key": "ak_1",
    "x-svc-timestamp": "1781985600",
    "x-svc-nonce": "0123456789abcdef",
    "x-svc-signature": "a".repeat(64),
  };
  fits(t, readAuthHeaders(good), { accessKey: "ak_1", nonce: "0123456789abcdef" });
  t.not(readAuthHeaders({ ...good, "x-svc-nonce": "n".repeat(64) }), null, "the longest nonce");
  for (const name of Object.keys(good))
    t.equal(readAuthHeaders({ ...good, [name]: undefined }), null, `without ${name}`);
  const bad: [string, string][] = [
    ["x-svc-access-key", ""],
    ["x-svc-access-key", "ak_1, ak_1"],
    ["x-svc-timestamp", "178198560"],
    ["x-svc-timestamp", "17819856000"],
    ["x-svc-timestamp", "+178198560"],
    ["x-svc-timestamp", "1781985600.0"],
    ["x-svc-timestamp", "1781985600\n"],
    ["x-svc-timestamp", "0x69e0b2c0"],
    ["x-svc-nonce", "0123456789abcde"],
    ["x-svc-nonce", "n".repeat(65)],
    ["x-svc-nonce", "0123456789abcde!"],
    ["x-svc-nonce", "0123456789abcdef, 0123456789abcdef"],
    ["x-svc-signature", "A".repeat(64)],
    ["x-svc-signature", "a".repeat(63)],
    ["x-svc-signature", "a".repeat(65)],
    ["x-svc-signature", "g".repeat(64)],
  ];
  for (const [name, value] of bad)
    t.equal(readAuthHeaders({ ...good, [name]: value }), null, `${name}: ${value.slice(0, 20)}`);
});

t.test("the window is 300 seconds in both directions", async (t) => {
  const now = 1_781_985_600_999;
  for (const [offset, isIn] of [
    [0, true],
    [300, true],
    [-300, true],
    [301, false],
    [-301, false],
  ] as const) {
    t.equal(isInWindow(String(1_781_985_600 + offset), now), isIn, `${offset} s`);
  }
});

function* flipEach(bytes: Buffer): Generator<Buffer> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    yield changed;
  }
}
