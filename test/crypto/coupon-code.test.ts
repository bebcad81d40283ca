// Coupon codes: their construction, normalization, the offline check, key rotation, and how they are found in other
// text.
import { createHmac, hash, hkdfSync, randomBytes } from "node:crypto";
import t from "tap";
import { crockfordAlphabet } from "../../src/formats/crockford.ts";
import { batchKey, checkCode, lookupHash, makeCode, normalizeCode } from "../../src/crypto/coupon-code.ts";
import { containsCode, createCodeFinder } from "../../src/crypto/find-code.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { inGroups, spellings } from "../support/spellings.ts";

const [first, second] = [Buffer.alloc(32, 7), Buffer.alloc(32, 8)];
const keys = parseMasterKeys(first.toString("base64"));
const otherKeys = parseMasterKeys(second.toString("base64"));
const rotated = parseMasterKeys(`2:${second.toString("base64")},1:${first.toString("base64")}`);
const salt = Buffer.alloc(16, 1);
const key = batchKey(keys, "1", salt);
const codeOf = (number: number) => makeCode(keys, "1", key, number);

t.test("a code is constructed as documented", async (t) => {
  // An independent computation, bit by bit.
  const text = (digest: Buffer, characters: number) => {
    const bits = [...digest].map((byte) => byte.toString(2).padStart(8, "0")).join("");
    const digitAt = (index: number) => crockfordAlphabet[Number.parseInt(bits.slice(index * 5, index * 5 + 5), 2)];
    return Array.from({ length: characters }, (_, index) => digitAt(index)).join("");
  };
  const derive = (from: Buffer | string, purpose: string) => Buffer.from(hkdfSync("sha256", first, from, purpose, 32));
  const sign = (under: Buffer, of: Buffer | string) => createHmac("sha256", under).update(of).digest();
  const number = Buffer.alloc(8);
  number.writeUInt32BE(123_456, 4);
  const body = text(sign(derive(salt, "coupon/batch"), number), 11);
  const tag = text(sign(derive("", "coupon/tag"), `1${body}`), 4);
  t.equal(codeOf(123_456), `1${body}${tag}`);
});

t.test("100,000 codes are all different and pass the check; their lookup hashes have the form of a UUID", async (t) => {
  const codes = Array.from({ length: 100_000 }, (_, index) => codeOf(index + 1));
  t.equal(new Set(codes).size, codes.length);
  for (const made of codes.slice(0, 1_000)) if (normalizeCode(made) !== made || !checkCode(keys, made)) t.fail(made);
  const [code, other] = codes as [string, string];
  t.match(lookupHash(keys, code), /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  t.equal(lookupHash(keys, code), lookupHash(keys, code));
  t.not(lookupHash(keys, code), lookupHash(keys, other));
  t.equal(makeCode(keys, "1", batchKey(keys, "1", salt), 1), code, "the same salt derives the same codes again");
  t.not(makeCode(keys, "1", batchKey(keys, "1", randomBytes(16)), 1), code, "another salt does not");
  const again = makeCode(keys, "1", key, 1, 1);
  t.not(again, code, "a second attempt at the same number is another code");
  t.ok(checkCode(keys, again));
  t.equal(codeOf(1), code, "without an effect on later calls");
});

t.test(
  "input is normalized: case, fillers, full-width letters, and O, I and L; anything else is refused",
  async (t) => {
    const code = "10ABCDEFGHJKMNPQ";
    for (const typed of [
      "10abcdefghjkmnpq",
      "10AB-CDEF-GHJK-MNPQ",
      " 10AB CDEF GHJK MNPQ ",
      "IOABCDEFGHJKMNPQ",
      "loabcdefghjkmnpq",
      "iO-ab cdefghjkmnpq",
      "10ABCDEFGHJKMNPQ\r\n",
      "1\u00000ABCDEFGHJKMNPQ\u001d",
      "１０ＡＢＣＤ－ｅｆｇｈ　ＪＫＭＮＰＱ",
      "\ufeff10AB\u201010\u2013CDEF\u2014GHJK\u2212MNPQ".replace("\u201010", "\u2010"),
      ...[..."\t\u00a0\u00ad\u200b\u200d\u202e\u2060\u2011\u2015\u2e3a\ufe63\u30fc\u3164\u2800\ufe0f\u034f"].map(
        (filler) => `${filler}10AB${filler}CDEFGHJKMNPQ`,
      ),
      [..."10ABCDEFGHJKMNPQ"].join("\u200b-\u00a0"),
    ])
      t.equal(normalizeCode(typed), code, typed);
    for (const text of [
      "",
      "1",
      "10ABCDEFGHJKMNP",
      "10ABCDEFGHJKMNPQR",
      "10ABCDEFGHJKMNPU",
      "10ABCDEFGHJKMNP!",
      "10ABCDEFGHJKMNPé",
      "10AB_CDEF_GHJK_MNPQ",
      "10ABCDEFGHJKMNP\u0440",
      "10ABCDEFGHJKMNP\u24c6",
      "10ABCDEFGHJKMNPQ\u0301",
      "10AB\u00b7CDEFGHJKMNPQ",
      "-".repeat(70),
    ])
      t.equal(normalizeCode(text), null, JSON.stringify(text));
  },
);

t.test("a code with any one character changed, or of an unknown key version, is refused", async (t) => {
  const code = codeOf(77);
  for (let at = 0; at < 16; at += 1) {
    for (const character of crockfordAlphabet) {
      const changed = code.slice(0, at) + character + code.slice(at + 1);
      // A changed body has the right tag once in 2^20. With this key it never happens.
      if (changed !== code && checkCode(keys, changed)) t.fail(`${at}: ${character}`);
    }
  }
  t.notOk(checkCode(keys, `2${code.slice(1)}`));
  t.notOk(checkCode(otherKeys, code), "another master key");
});

t.test("after a rotation old codes are still valid and found, and new codes have the new version", async (t) => {
  const [old, code] = [codeOf(5), makeCode(rotated, "2", batchKey(rotated, "2", salt), 5)];
  t.equal(rotated.current, "2");
  t.equal(code[0], "2");
  t.equal(lookupHash(rotated, old), lookupHash(keys, old));
  for (const one of [old, code]) t.ok(checkCode(rotated, one) && containsCode(rotated, `x ${one}`));
  t.notOk(checkCode(keys, code) || containsCode(keys, code));
  t.notOk(containsCode(otherKeys, old));
});

t.test("a code is found in every spelling, among other words, and at every place of a long text", async (t) => {
  for (let number = 1; number <= 50; number += 1)
    for (const text of spellings(codeOf(number)))
      if (!containsCode(keys, text)) t.fail(`${number}: ${text.replace(/[0-9a-z]/gi, "x")}`);
  const code = inGroups(codeOf(7));
  const words = "order 4711 of Tuesday, paid in cash; ".repeat(10);
  for (let at = 0; at <= words.length; at += 1)
    if (!containsCode(keys, words.slice(0, at) + code + words.slice(at))) t.fail(`at ${at}`);
});

t.test("a text with one wrong character is no code, and neither is one with another letter in between", async (t) => {
  const code = codeOf(77);
  for (let at = 0; at < 16; at += 1) {
    const changed = code.slice(0, at) + (code[at] === "7" ? "8" : "7") + code.slice(at + 1);
    t.notOk(containsCode(keys, changed), `character ${at}`);
    if (at > 0) t.notOk(containsCode(keys, `${code.slice(0, at)}u${code.slice(at)}`), `a letter before ${at}`);
  }
  t.notOk(containsCode(keys, code.slice(1)));
  t.notOk(containsCode(keys, ""));
});

t.test("an ID is taken for a code about once in a million, as documented", async (t) => {
  const texts = Array.from({ length: 20_000 }, (_, number) => hash("sha256", String(number)).slice(0, 32));
  t.equal(texts.filter((text) => containsCode(keys, text)).length, 0);
  // An ID of 32 hex digits has 17 windows, and one in 16 begins with the version 1.
  const windows = texts.flatMap((text) => Array.from({ length: 17 }, (_, at) => text[at]!));
  const candidates = windows.filter((begin) => keys.versions.has(begin)).length / texts.length;
  t.ok(candidates > 0.9 && candidates < 1.2, `${candidates} candidates per ID`);
});

t.test("a search ends after 8,000 candidates: a text with more of them counts as one with a code", async (t) => {
  const candidates = (count: number) => "1".repeat(count + 15);
  t.notOk(containsCode(keys, candidates(8_000)));
  t.ok(containsCode(keys, candidates(8_001)));
  const find = createCodeFinder(keys, 100);
  t.notOk(find(candidates(60)));
  t.ok(find(candidates(60)), "the candidates of all texts count");
  // A letter that no code has makes no candidate, so texts with one every 16 characters cost nothing.
  const findNone = createCodeFinder(keys, 0);
  for (const letter of ["u", "U", "ü"]) t.notOk(findNone(`1${"1".repeat(14)}${letter}`.repeat(50)), letter);
  t.ok(findNone("1".repeat(16)));
});
