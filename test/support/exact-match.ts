// `t.match` as this project needs it: an object may have further fields, and nothing else may differ. tap itself also
// lets a list have further entries, finds "1" in "10", and takes 1 for "1". Each test file loads this first, see "tap"
// in package.json.
import { Format, Match } from "tcompare";

const isPrimitive = (value: unknown): boolean => ["string", "number", "bigint", "boolean"].includes(typeof value);

// Has cuts the list to the length of the pattern. Format has the whole list.
const wholeList = Object.getOwnPropertyDescriptor(Format.prototype, "objectAsArray")!;
Object.defineProperty(Match.prototype, "objectAsArray", wholeList);

// A text that is itself compared may still contain the pattern: t.match(output, "part of it").
const { test } = Match.prototype;
Match.prototype.test = function (this: Match): boolean | "COMPLEX" {
  const isField = this.parent !== null && isPrimitive(this.object) && isPrimitive(this.expect);
  return isField ? this.object === this.expect : test.call(this);
};
