// Master keys, what is sealed under them, and the signatures of requests and webhooks.
import { createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import t from "tap";
import { newNonce, newRequestId, sign } from "../../clients/typescript/src/signature.ts";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { createKeyReview, fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { createMac } from "../../src/crypto/mac.ts";
import {
  headerForms,
  isInWindow,
  readAuthHeaders,
  stringToSign,
  verify,
  type Signed,
} from "../../src/crypto/request-signature.ts";
import { credentialPurpose, hashSecret, open, seal, webhookPurpose } from "../../src/crypto/seal.ts";
import { signWebhook } from "../../src/crypto/webhook-signature.ts";
import { fits } from "../support/fits.ts";

const [one, two] = [1, 2].map(() => randomBytes(32).toString("base64")) as [string, string];
const both = parseMasterKeys(`2:${two},1:${one}`);

t.test("the setting is one key, or a list with the current key first; a wrong one is refused unseen", async (t) => {
  const { current, others } = parseMasterKeys(one);
  t.strictSame({ current, others }, { current: "1", others: [] });
  fits(t, parseMasterKeys(`2:${two}, 1:${one}`), { current: "2", others: ["1"] });
  t.strictSame([...parseMasterKeys(`Z:${two},1:${one}`).versions.keys()], ["Z", "1"]);
  for (const text of [
    "",
    "short",
    `${one}x`,
    randomBytes(31).toString("base64"),
    randomBytes(33).toString("base64"),
    `${one},${two}`,
    `1:${one},1:${two}`,
    `O:${one}`,
    `12:${one}`,
    `:${one}`,
    `2:${two},1:`,
    one.replace(/.$/, "!"),
  ]) {
    const isAbout = (error: unknown) => {
      const { message } = error as Error;
      return message.startsWith("COUPON_MASTER_KEY") && (text === "" || !message.includes(text));
    };
    t.ok(isAbout(t.throws(() => parseMasterKeys(text))));
  }
});

t.test("a fingerprint tells keys and versions apart, and is an HMAC under a key for this purpose alone", async (t) => {
  const fingerprints = (text: string): Record<string, string> => JSON.parse(fingerprintKeys(parseMasterKeys(text)));
  const list = fingerprints(`2:${two},1:${one}`);
  t.strictSame(Object.keys(list).sort(), ["1", "2"]);
  t.equal(list["1"], fingerprints(one)["1"], "the same key has the same fingerprint in every list");
  t.not(list["1"], fingerprints(two)["1"]);
  t.not(list["1"], fingerprints(`2:${one}`)["2"], "the version counts");
  const master = Buffer.alloc(32, 7);
  const derived = Buffer.from(hkdfSync("sha256", master, Buffer.alloc(0), "coupon/fingerprint", 32));
  const expected = createHmac("sha256", derived).update("1").digest("hex").slice(0, 32);
  t.strictSame(fingerprints(master.toString("base64")), { 1: expected });
});

t.test("a version may be missing only after none was, and never differ", async (t) => {
  const review = createKeyReview(parseMasterKeys(randomBytes(32).toString("base64")));
  const missing = { version: "2", problem: "MISSING" } as const;
  const differs = { version: "1", problem: "DIFFERS" } as const;
  const isMissing = { name: "ConfigError", message: /key 2 is missing/ };
  for (let times = 0; times < 2; times += 1) t.throws(() => review([missing]), isMissing);
  review([]);
  for (let times = 0; times < 2; times += 1) review([missing]);
  t.throws(() => review([missing, differs]), { name: "ConfigError", message: /key 1 is not the one/ });
});

t.test("a sealed secret opens for its purpose only, unchanged and whole; every sealing looks different", async (t) => {
  const keys = parseMasterKeys(one);
  const secret = "a secret of at least thirty-two characters, ü";
  const purpose = credentialPurpose("ak_1");
  const sealed = seal(keys, purpose, secret);
  t.equal(open(keys, purpose, sealed), secret);
  t.equal(open(keys, purpose, new Uint8Array(sealed)), secret);
  t.not(seal(keys, purpose, secret).toString("hex"), sealed.toString("hex"));
  t.notOk(sealed.includes("secret"));
  t.throws(() => open(keys, credentialPurpose("ak_2"), sealed));
  t.throws(() => open(keys, webhookPurpose("ten_1", "pty_1"), sealed));
  t.throws(() => open(parseMasterKeys(two), purpose, sealed));
  for (const changed of flipEach(sealed)) t.throws(() => open(both, purpose, changed));
  for (let length = 0; length < sealed.length; length += 1)
    t.throws(() => open(both, purpose, sealed.subarray(0, length)));
  // After a rotation.
  t.equal(open(both, purpose, sealed), secret);
  t.equal(seal(both, purpose, secret)[0], "2".charCodeAt(0));
  t.equal(hashSecret(both, secret, "1"), hashSecret(keys, secret));
  t.equal(hashSecret(both, secret), hashSecret(parseMasterKeys(`2:${two}`), secret));
});

t.test("what a program of an earlier version hashed and sealed is still found and opened", async (t) => {
  // Fixed values. A change of them makes every printed code unknown and every stored secret unreadable.
  const keys = parseMasterKeys(`0:${Buffer.alloc(32, 7).toString("base64")}`);
  const [code, secret] = ["0123456789ABCDEF", "test_secret_0123456789abcdefghijklmnop"];
  const body = { request_id: "r-1", merchant: "mch_1", order_amount: 1250, coupon: code };
  const sealed: [purpose: string, text: string][] = [
    [
      credentialPurpose("ak_1"),
      "MAmtCI7UNrgHWCq8fkJT3psgobwHwf5xTuisE+u+6JtVEo9WhVureZLiOKmc72pNiCI5QLzS7lv3zFGUINjWjhYRJg==",
    ],
    [
      webhookPurpose("ten_1", "pty_1"),
      "MPf2ny+mN2j/SaG5k/9HZPNxKySeaKx0NMptUZEDAF97YiViw765kbQ9oA7sNKTEECmLbMh0tnUg2+3/7uQDrx4usw==",
    ],
  ];
  for (const [purpose, text] of sealed) t.equal(open(keys, purpose, Buffer.from(text, "base64")), secret, purpose);
  t.equal(lookupHash(keys, code), "13a3bf34-b8a9-552d-694e-ac597c41dac8");
  t.equal(hashBody(keys, body), "751a01cfb11638dc");
  t.equal(hashSecret(keys, secret), "26cf5529189ea6f94515e29814db455d0a822a04afc553bc240021b6f6ace92d");
});

t.test("a Mac is the HMAC-SHA256 of its message, for keys and messages of any length", async (t) => {
  for (const keyLength of [0, 1, 32, 63, 64, 65, 1_000])
    for (const length of [0, 1, 55, 56, 63, 64, 65, 70_000]) {
      const [key, message] = [randomBytes(keyLength), randomBytes(length)];
      const expected = createHmac("sha256", key).update(message).digest();
      const mac = createMac(key);
      t.equal(mac(message, "hex"), expected.toString("hex"), `${keyLength} and ${length} bytes`);
      t.equal(mac(message, "binary"), expected.toString("binary"), "the same again, in characters");
    }
  t.equal(createMac("schlüssel")("größe", "hex"), createHmac("sha256", "schlüssel").update("größe").digest("hex"));
});

type Vector = Omit<Signed, "body"> & { body: string; body_sha256: string; string_to_sign: string; signature: string };
const { secret, vectors } = JSON.parse(readFileSync(new URL("../vectors/signing.json", import.meta.url), "utf8")) as {
  secret: string;
  vectors: Vector[];
};
const mac = createMac(secret);
const signedOf = (vector: Vector): Signed => ({ ...vector, body: Buffer.from(vector.body) });

t.test("every published vector is signed and verified as published, by the service and by its client", async (t) => {
  t.equal(vectors.length, 11);
  for (const vector of vectors) {
    const signed = signedOf(vector);
    t.equal(createHash("sha256").update(signed.body).digest("hex"), vector.body_sha256);
    t.equal(stringToSign(signed).toString("latin1"), vector.string_to_sign, `${vector.method} ${vector.target}`);
    t.equal(sign(secret, signed), vector.signature);
    t.ok(verify(mac, signed, vector.signature));
  }
});

t.test("any changed bit of the signed parts or of the signature fails, and so does another secret", async (t) => {
  for (const vector of vectors.slice(0, 6)) {
    const signed = signedOf(vector);
    const refuse = (changed: Signed, signature: string, what: string) => {
      if (verify(mac, changed, signature)) t.fail(`${what} of ${vector.target} was changed and still verifies`);
    };
    for (const part of ["method", "target", "timestamp", "nonce"] as const)
      for (const bytes of flipEach(Buffer.from(signed[part], "latin1")))
        refuse({ ...signed, [part]: bytes.toString("latin1") }, vector.signature, part);
    for (const body of flipEach(Buffer.from(signed.body))) refuse({ ...signed, body }, vector.signature, "the body");
    for (const bytes of flipEach(Buffer.from(vector.signature, "hex")))
      refuse(signed, bytes.toString("hex"), "the signature");
  }
  const signed = signedOf(vectors[0]!);
  const { signature } = vectors[0]!;
  const moved = { target: signed.target + signed.timestamp[0]!, timestamp: signed.timestamp.slice(1) };
  t.notOk(verify(mac, { ...signed, ...moved }, signature), "a character moved between the parts");
  t.notOk(verify(mac, { ...signed, target: `${signed.target}\n` }, signature));
  t.notOk(verify(createMac(`${secret}x`), signed, signature));
  for (const short of ["", signature.slice(0, 62)]) t.notOk(verify(mac, signed, short));
});

t.test("headers are accepted only if all are present and well-formed", async (t) => {
  const good = {
    "x-svc-access-key": "ak_1",
    "x-svc-timestamp": "1781985600",
    "x-svc-nonce": "0123456789abcdef",
    "x-svc-signature": "a".repeat(64),
  };
  fits(t, readAuthHeaders(good), { accessKey: "ak_1", nonce: "0123456789abcdef" });
  t.notOk("issues" in readAuthHeaders({ ...good, "x-svc-nonce": "n".repeat(64) }), "the longest nonce");
  const wrong: Record<string, string[]> = {
    "access-key": ["", "ak_1, ak_1"],
    timestamp: ["178198560", "17819856000", "+178198560", "1781985600.0", "1781985600\n", "0x69e0b2c0"],
    nonce: ["0123456789abcde", "n".repeat(65), "0123456789abcde!", "0123456789abcdef, 0123456789abcdef"],
    signature: ["A".repeat(64), "a".repeat(63), "a".repeat(65), "g".repeat(64)],
  };
  for (const [name, values] of Object.entries(wrong)) {
    const path = `x-svc-${name}`;
    const form = headerForms[path as keyof typeof headerForms];
    for (const value of values)
      t.strictSame(
        readAuthHeaders({ ...good, [path]: value }),
        { issues: [{ path, message: `must be ${form}` }] },
        value,
      );
    const missing = { issues: [{ path, message: `is missing: it must be ${form}` }] };
    t.strictSame(readAuthHeaders({ ...good, [path]: undefined }), missing, path);
  }
});

t.test("the window is 300 seconds in both directions", async (t) => {
  const isIn = (offset: number) => isInWindow(String(1_781_985_600 + offset), 1_781_985_600_999);
  t.strictSame([-301, -300, 0, 300, 301].map(isIn), [false, true, true, true, false]);
});

t.test("a nonce and a request_id never look like a code: they have a u at least every 16 characters", async (t) => {
  const made = Array.from({ length: 1_000 }, () => [newNonce(), newRequestId()]).flat();
  t.equal(new Set(made).size, 2_000);
  for (const text of made) if (!/^u[\w-]{15,}$/.test(text) || /[0-9a-tv-z]{16}/i.test(text)) t.fail(text);
});

t.test("the example of the Standard Webhooks specification gets its published signature", async (t) => {
  const [key, id] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"];
  const signature = signWebhook(key, id, 1614265330, '{"test": 2432232314}');
  t.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

function* flipEach(bytes: Buffer): Generator<Buffer> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    yield changed;
  }
}
