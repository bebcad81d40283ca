// Compares a value with a pattern: an object may have further fields, and nothing else may differ. Regular expressions
// and types (Number, String) stand for what they match. t.match would also let a list have further entries, find "1" in
// "10", and take 1 for "1".
import type { Test } from "tap";
import { Format, Match } from "tcompare";

const isPrimitive = (value: unknown): boolean => ["string", "number", "bigint", "boolean"].includes(typeof value);

class Fit extends Match {
  // Match cuts a list to the length of the pattern.
  override get objectAsArray() {
    return new Format(this.object).objectAsArray;
  }

  override test(): boolean | "COMPLEX" {
    const arePrimitive = isPrimitive(this.object) && isPrimitive(this.expect);
    return arePrimitive ? this.object === this.expect : super.test();
  }
}

export function fits(t: Test, found: unknown, pattern: unknown, message = "fits the pattern"): boolean {
  t.currentAssert = fits;
  const fit = new Fit(found, { expect: pattern });
  const diff = fit.print();
  return fit.match ? t.pass(message) : t.fail(message, { diff });
}
