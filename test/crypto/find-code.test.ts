// Codes in other text: every spelling is found, and other text is not taken for a code.
import { hash } from "node:crypto";
import t from "tap";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { containsCode, createCodeFinder } from "../../src/crypto/find-code.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { inGroups, spellings } from "../support/spellings.ts";

const first = Buffer.alloc(32, 7).toString("base64");
const second = Buffer.alloc(32, 8).toString("base64");
const keys = parseMasterKeys(first);
const batch = batchKey(keys, "1", Buffer.alloc(16, 1));
const codeOf = (number: number) => makeCode(keys, "1", batch, number);

t.test("A code is found in every spelling, alone and among other words", async (t) => {
  for (let number = 1; number <= 50; number += 1) {
    for (const text of spellings(codeOf(number)))
      if (!containsCode(keys, text)) t.fail(`${number}: ${text.replace(/[0-9a-z]/gi, "x")}`);
  }
});

t.test("A code is found at every place of a long text", async (t) => {
  const code = inGroups(codeOf(7));
  const words = "order 4711 of Tuesday, paid in cash; ".repeat(10);
  for (let at = 0; at <= words.length; at += 1)
    if (!containsCode(keys, words.slice(0, at) + code + words.slice(at))) t.fail(`at ${at}`);
});

t.test("A text with one wrong character is no code, and neither is one with another letter in between", async (t) => {
  const code = codeOf(77);
  for (let at = 0; at < 16; at += 1) {
    const changed = code.slice(0, at) + (code[at] === "7" ? "8" : "7") + code.slice(at + 1);
    t.notOk(containsCode(keys, changed), `character ${at}`);
    if (at > 0) t.notOk(containsCode(keys, `${code.slice(0, at)}u${code.slice(at)}`), `a letter before ${at}`);
  }
  t.notOk(containsCode(keys, code.slice(1)));
  t.notOk(containsCode(keys, ""));
});

t.test("Codes of all listed key versions are found, and codes of other keys are not", async (t) => {
  const both = parseMasterKeys(`2:${second},1:${first}`);
  const newCode = makeCode(both, "2", batchKey(both, "2", Buffer.alloc(16, 1)), 1);
  for (const code of [codeOf(1), newCode]) t.ok(containsCode(both, `x ${code}`));
  t.notOk(containsCode(keys, newCode));
  t.notOk(containsCode(parseMasterKeys(second), codeOf(1)));
});

t.test("An ID is taken for a code about once in a million, as documented", async (t) => {
  const texts = Array.from({ length: 20_000 }, (_, number) => hash("sha256", String(number)).slice(0, 32));
  t.equal(texts.filter((text) => containsCode(keys, text)).length, 0);
  // An ID of 32 hex digits has 17 windows, and one in 16 begins with the version 1.
  const windows = texts.flatMap((text) => {
    const digits = text.toUpperCase();
    return Array.from({ length: 17 }, (_, at) => digits.slice(at, at + 16));
  });
  const candidates = windows.filter((window) => keys.versions.has(window[0]!)).length / texts.length;
  t.ok(candidates > 0.9 && candidates < 1.2, `${candidates} candidates per ID`);
});

t.test("A search ends after 8,000 candidates: a text with more of them counts as one with a code", async (t) => {
  const candidates = (count: number) => "1".repeat(count + 15);
  t.notOk(containsCode(keys, candidates(8_000)));
  t.ok(containsCode(keys, candidates(8_001)));
  const find = createCodeFinder(keys, 100);
  t.notOk(find(candidates(60)));
  t.ok(find(candidates(60)), "the candidates of all texts count");
});

t.test(
  "A letter that no code has makes no candidate, so texts with one every 16 characters cost nothing",
  async (t) => {
    const find = createCodeFinder(keys, 0);
    for (const letter of ["u", "U", "ü"]) t.notOk(find(`1${"1".repeat(14)}${letter}`.repeat(50)), letter);
    t.ok(find("1".repeat(16)));
  },
);
