// Turns a signed request into a call for the database: checks its shape, then its code. A refusal here is a 400 or a
// 422 COUPON_CODE_INVALID. It is not recorded; only the nonce is spent.
import { hashBody } from "../crypto/body-hash.ts";
import { checkCode, lookupHash, normalizeCode, spells } from "../crypto/coupon-code.ts";
import { requestId } from "./fields.ts";
import type { Call, Variant } from "../gate/gate.ts";
import { listIssues, safeName } from "./issues.ts";
import { parseObject } from "./strict-json.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { invalid, Problem, type Issue } from "./problem.ts";
import type { Route, Values } from "./route.ts";

// A body, parsed once: answers need its request_id before the rest is checked.
export type Input = { values: Values } | { error: unknown };
export type Request = {
  query: string;
  segments: Record<string, string>;
  idempotencyKeys: string[];
  body: Uint8Array;
  input: Input;
};
export type Reading = Pick<Call, "operation" | "idempotency_key" | "body_hash" | "args">;

export function readCall(route: Route, variant: Variant, request: Request, keys: MasterKeys): Reading {
  const issues: Issue[] = [];
  const parameters = readQuery(request.query, route.query ?? [], issues);
  const idempotencyKey = route.isWrite ? readIdempotencyKey(request.idempotencyKeys, issues) : null;
  const input = route.method === "POST" ? valuesOf(request.input) : { ...parameters, ...request.segments };
  if (route.method === "GET" && request.body.length > 0)
    issues.push({ path: "(body)", message: "a GET takes no body" });
  const parsed = route.schema(variant).safeParse(input);
  if (!parsed.success) issues.push(...listIssues(parsed.error, input));
  if (!parsed.success || issues.length > 0) throw invalid(issues);

  const values = parsed.data;
  refuseCodeElsewhere(values, idempotencyKey);
  return {
    operation: route.operation,
    idempotency_key: idempotencyKey,
    body_hash: route.isWrite ? hashBody(keys, values) : null,
    args: readArgs(route, values, keys),
  };
}

export function parseInput(body: Uint8Array): Input {
  try {
    return { values: parseObject(body) };
  } catch (error) {
    return { error };
  }
}

function valuesOf(input: Input): Values {
  if ("error" in input) throw input.error;
  return input.values;
}

// The other fields are stored and logged, so they must not contain the code.
function refuseCodeElsewhere({ coupon, ...others }: Values, idempotencyKey: string | null): void {
  if (typeof coupon !== "string") return;
  const isCode = (value: unknown): boolean =>
    typeof value === "string"
      ? spells(value, coupon)
      : typeof value === "object" && value !== null && Object.values(value).some(isCode);
  const found = Object.entries({ ...others, "idempotency-key": idempotencyKey }).find(([, value]) => isCode(value));
  if (found !== undefined) throw invalid([{ path: found[0], message: "must not contain the coupon's code" }]);
}

function readArgs(route: Route, values: Values, keys: MasterKeys): Values {
  const { request_id: _, ...rest } = values;
  const args = route.method === "GET" ? values : rest;
  if (typeof args["coupon"] === "string") {
    if (!checkCode(keys, args["coupon"])) throw new Problem("COUPON_CODE_INVALID");
    args["coupon"] = lookupHash(keys, args["coupon"]);
  }
  return route.args === undefined ? args : route.args(args, keys);
}

function readQuery(query: string, known: readonly string[], issues: Issue[]): Values {
  const values: Values = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.includes(name)) issues.push({ path: safeName(name), message: "unknown query parameter" });
    else if (name in values) issues.push({ path: name, message: "duplicate query parameter" });
    else values[name] = value;
  }
  return values;
}

// Node decodes header bytes as Latin-1, but a caller sends a key beyond ASCII as UTF-8.
function readIdempotencyKey(given: string[], issues: Issue[]): string | null {
  if (given.length === 0) return null;
  const key = Buffer.from(given[0]!, "latin1").toString("utf8");
  if (given.length === 1 && !key.includes("\ufffd") && requestId.safeParse(key).success) return key;
  issues.push({ path: "idempotency-key", message: "the header must be 1 to 128 printable characters" });
  return null;
}

// The caller's request_id, which an error answer repeats even if the rest of the body is invalid. Null: not usable.
export function findRequestId(input: Input): string | null {
  if ("error" in input) return null;
  const { request_id, coupon } = input.values;
  const found = requestId.safeParse(request_id);
  if (!found.success) return null;
  // It is logged, so it must not contain the code.
  const code = typeof coupon === "string" ? normalizeCode(coupon) : null;
  return code !== null && spells(found.data, code) ? null : found.data;
}
