// Compares an answer of the service with the one that the model expects.
import type { Answer, Expected } from "./judge.ts";

// Describes what is wrong with an answer; null: nothing.
export function compareAnswer({ status, body, replayOf }: Expected, { json, text, ...answer }: Answer): string | null {
  const isRight = replayOf === undefined ? matches(body, json) : text === replayOf;
  if (answer.status === status && isRight && answer.isReplay === (replayOf !== undefined)) return null;
  const pattern = JSON.stringify(body, (_, value) => (value instanceof RegExp ? String(value) : value));
  return `expected ${status} ${replayOf === undefined ? pattern : `${replayOf}, replayed`}`;
}

// Both must have the same fields.
function matches(expected: unknown, given: unknown): boolean {
  if (expected instanceof RegExp) return typeof given === "string" && expected.test(given);
  if (typeof expected === "function") return expected(given);
  if (typeof expected !== "object" || expected === null) return expected === given;
  if (typeof given !== "object" || given === null) return false;
  const names = Object.keys(expected);
  return (
    Object.keys(given).length === names.length &&
    names.every((name) => matches((expected as any)[name], (given as any)[name]))
  );
}
