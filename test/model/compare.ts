// Compares an answer with the one that the model expects.
import type { Call, Expected, Reply } from "./call.ts";

// One line for the transcript of a run.
export function show({ status, json, isReplay }: Reply): string {
  const result =
    status === 200
      ? (json.discount_amount ?? json.status ?? json.coupon?.status ?? json.batch?.status ?? "ok")
      : json?.code;
  return `${status} ${result}${isReplay ? ", replayed" : ""}`;
}

// Describes what is wrong with an answer; null: nothing.
export function compareAnswer(expected: Expected, reply: Reply, call: Call): string | null {
  const { status, code, details, fields, replayOf } = expected;
  const body = code ?? (replayOf === undefined ? JSON.stringify(fields, showPattern) : "replayed");
  const expectation = `expected ${status} ${body}`;
  const wrong = `${expectation}, got ${reply.text}`;
  if (reply.status !== status || reply.isReplay !== (replayOf !== undefined)) return wrong;
  if (replayOf !== undefined) return reply.text === replayOf ? null : `expected ${replayOf} again, got ${reply.text}`;
  if (fields !== undefined) return matches(fields, reply.json) ? null : wrong;
  const given = code === "INVALID_REQUEST" ? reply.json.details?.issues?.[0]?.path : reply.json.details;
  const hasShape =
    typeof reply.json.message === "string" && Object.keys(reply.json).join() === "code,message,request_id,details";
  const isNamed =
    reply.json.request_id === call.requestId ||
    (String(reply.json.request_id).startsWith("req_") && call.operation.startsWith("get_"));
  return reply.json.code === code && hasShape && isNamed && matches(details, given)
    ? null
    : `${expectation} ${JSON.stringify(details)}, got ${reply.text}`;
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

const showPattern = (_: string, value: unknown) => (value instanceof RegExp ? String(value) : value);
