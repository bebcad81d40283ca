// Generated codes, as people type and mistype them.
import fc from "fast-check";
import t from "tap";
import { batchKey, checkCode, makeCode, normalizeCode } from "../../src/crypto/coupon-code.ts";
import { crockfordAlphabet } from "../../src/common/crockford.ts";
import { keys } from "../support/stub.ts";

const key = batchKey(keys, "1", Buffer.alloc(16, 3));
const made = fc.nat(9_999_999).map((number) => makeCode(keys, "1", key, number + 1));
// The ways to type a character. Between characters there may be hyphens and spaces.
const look: Record<string, string[]> = { 0: ["0", "O", "o"], 1: ["1", "I", "i", "L", "l"] };
const typed = (code: string) =>
  fc
    .tuple(
      ...[...code].map((character) => fc.constantFrom(...(look[character] ?? [character, character.toLowerCase()]))),
    )
    .chain((characters) =>
      fc
        .array(fc.constantFrom("", "", "-", " "), { minLength: 17, maxLength: 17 })
        .map((gaps) => gaps.map((gap, index) => gap + (characters[index] ?? "")).join("")),
    );

t.test("Every allowed spelling of a code is read as that code", async () => {
  fc.assert(
    fc.property(
      made.chain((code) => typed(code).map((text) => ({ code, text }))),
      ({ code, text }) => normalizeCode(text) === code && checkCode(keys, code),
    ),
    { numRuns: 1_000 },
  );
});

t.test("Any text is read as a code of 16 characters or as no code, without an error", async () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.string({
      unit: fc.constantFrom(...crockfordAlphabet, ..."oOiIlLuU- ", "\u00a0", "\uff10", "\u0130", "\u017f", "\u212a"),
      maxLength: 70,
    }),
    made.chain((code) =>
      fc
        .tuple(fc.nat(16), fc.string({ unit: "binary", maxLength: 3 }))
        .map(([at, more]) => code.slice(0, at) + more + code.slice(at)),
    ),
  );
  fc.assert(
    fc.property(text, (given) => {
      const code = normalizeCode(given);
      if (code === null) return true;
      // Only the documented characters are skipped or replaced.
      const plain = given
        .replace(/[- ]/g, "")
        .replace(/[a-z]/g, (letter) => letter.toUpperCase())
        .replace(/O/g, "0")
        .replace(/[IL]/g, "1");
      checkCode(keys, code);
      return (
        code.length === 16 &&
        [...code].every((character) => crockfordAlphabet.includes(character)) &&
        plain === code &&
        normalizeCode(code) === code
      );
    }),
    { numRuns: 3_000 },
  );
});

t.test("A code with one wrong character or two swapped neighbours is refused", async (t) => {
  const slip = made.chain((code) =>
    fc.oneof(
      fc
        .tuple(fc.nat(15), fc.constantFrom(...crockfordAlphabet))
        .map(([at, character]) => ({ code, slipped: code.slice(0, at) + character + code.slice(at + 1) })),
      fc.nat(14).map((at) => ({ code, slipped: code.slice(0, at) + code[at + 1]! + code[at]! + code.slice(at + 2) })),
    ),
  );
  let [tried, accepted] = [0, 0];
  fc.assert(
    fc.property(slip, ({ code, slipped }) => {
      if (slipped === code) return;
      tried += 1;
      if (checkCode(keys, slipped)) accepted += 1;
    }),
    { numRuns: 10_000 },
  );
  // The tag has 20 bits, so one wrong code in a million passes it. It then almost never matches one of the 2^55 bodies.
  t.ok(accepted <= 1, `${accepted} of ${tried}`);
});
