// Master keys: the setting, and the sealing of secrets.
import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import t from "tap";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { createKeyReview, fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { credentialPurpose, hashSecret, open, seal, webhookPurpose } from "../../src/crypto/seal.ts";
import { fits } from "../support/fits.ts";

const one = randomBytes(32).toString("base64");
const two = randomBytes(32).toString("base64");

t.test("the setting is one key, or a list with the current key first", async (t) => {
  const { current, others } = parseMasterKeys(one);
  t.strictSame({ current, others }, { current: "1", others: [] });
  fits(t, parseMasterKeys(`2:${two}, 1:${one}`), { current: "2", others: ["1"] });
  t.strictSame([...parseMasterKeys(`Z:${two},1:${one}`).versions.keys()], ["Z", "1"]);
});

t.test("a wrong setting is refused without showing it", async (t) => {
  const bad = [
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
  ];
  for (const text of bad) {
    try {
      parseMasterKeys(text);
      t.fail(`accepted ${text}`);
    } catch (error) {
      t.match((error as Error).message, /^COUPON_MASTER_KEY/);
      t.notOk(text !== "" && (error as Error).message.includes(text));
    }
  }
});

t.test("a fingerprint tells keys and versions apart, and never contains a part of the key", async (t) => {
  const fingerprints = (text: string): Record<string, string> => JSON.parse(fingerprintKeys(parseMasterKeys(text)));
  const list = fingerprints(`2:${two},1:${one}`);
  t.strictSame(Object.keys(list).sort(), ["1", "2"]);
  for (const fingerprint of Object.values(list)) t.match(fingerprint, /^[0-9a-f]{32}$/);
  t.equal(list["1"], fingerprints(one)["1"], "the same key has the same fingerprint in every list");
  t.not(list["1"], fingerprints(two)["1"]);
  t.not(list["1"], fingerprints(`2:${one}`)["2"], "the version counts");
  const bytes = Buffer.from(one, "base64").toString("hex");
  t.notOk(bytes.includes(list["1"]!.slice(0, 8)));
});

t.test("a fingerprint is the HMAC of the version under a key derived for this purpose alone", async (t) => {
  const master = Buffer.alloc(32, 7);
  const derived = Buffer.from(hkdfSync("sha256", master, Buffer.alloc(0), "coupon/fingerprint", 32));
  const expected = createHmac("sha256", derived).update("1").digest("hex").slice(0, 32);
  t.equal(fingerprintKeys(parseMasterKeys(master.toString("base64"))), JSON.stringify({ 1: expected }));
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

t.test("a sealed secret opens for its purpose only, and every sealing looks different", async (t) => {
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
});

t.test("a sealed secret with any bit changed or any bytes cut off does not open", async (t) => {
  const keys = parseMasterKeys(`2:${two},1:${one}`);
  const sealed = seal(keys, "p", "secret");
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    t.throws(() => open(keys, "p", changed));
  }
  for (let length = 0; length < sealed.length; length += 1) t.throws(() => open(keys, "p", sealed.subarray(0, length)));
});

t.test("after a rotation older sealed secrets still open, and older hashes can be made", async (t) => {
  const before = parseMasterKeys(one);
  const after = parseMasterKeys(`2:${two},1:${one}`);
  const sealed = seal(before, "p", "secret");
  t.equal(open(after, "p", sealed), "secret");
  t.equal(seal(after, "p", "secret")[0], "2".charCodeAt(0));
  t.equal(hashSecret(after, "secret", "1"), hashSecret(before, "secret"));
  t.equal(hashSecret(after, "secret"), hashSecret(parseMasterKeys(`2:${two}`), "secret"));
});

t.test("what a program of an earlier version hashed and sealed is still found and opened", async (t) => {
  // Fixed values. A change of them makes every printed code unknown and every stored secret unreadable.
  const keys = parseMasterKeys(`0:${Buffer.alloc(32, 7).toString("base64")}`);
  const [code, secret] = ["0123456789ABCDEF", "test_secret_0123456789abcdefghijklmnop"];
  const body = { request_id: "r-1", merchant: "mch_1", order_amount: 1250, coupon: code };
  const sealed = {
    credential: "MAmtCI7UNrgHWCq8fkJT3psgobwHwf5xTuisE+u+6JtVEo9WhVureZLiOKmc72pNiCI5QLzS7lv3zFGUINjWjhYRJg==",
    webhook: "MPf2ny+mN2j/SaG5k/9HZPNxKySeaKx0NMptUZEDAF97YiViw765kbQ9oA7sNKTEECmLbMh0tnUg2+3/7uQDrx4usw==",
  };
  // Null if it does not open.
  const openStored = (purpose: string, text: string) => {
    try {
      return open(keys, purpose, Buffer.from(text, "base64"));
    } catch {
      return null;
    }
  };
  t.strictSame(
    {
      lookup: lookupHash(keys, code),
      body: hashBody(keys, body),
      hashedSecret: hashSecret(keys, secret),
      credential: openStored(credentialPurpose("ak_1"), sealed.credential),
      webhook: openStored(webhookPurpose("ten_1", "pty_1"), sealed.webhook),
    },
    {
      lookup: "13a3bf34-b8a9-552d-694e-ac597c41dac8",
      body: "751a01cfb11638dc",
      hashedSecret: "26cf5529189ea6f94515e29814db455d0a822a04afc553bc240021b6f6ace92d",
      credential: secret,
      webhook: secret,
    },
  );
});
