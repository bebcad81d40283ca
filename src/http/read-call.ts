// Turns a signed request into a call for the database: checks its shape, then its code. A refusal here is a 400 or a
// 422 COUPON_CODE_INVALID. It is not recorded; only the nonce is spent.
import { hashBody } from "../crypto/body-hash.ts";
import { checkCode, lookupHash } from "../crypto/coupon-code.ts";
import { containsCode, createCodeFinder } from "../crypto/find-code.ts";
import { refuseCodes, type Place } from "./code-places.ts";
import { requestId } from "./fields.ts";
import type { Call, Variant } from "../gate/gate.ts";
import { listIssues, maxIssues, safeName } from "./issues.ts";
import { parseObject } from "./strict-json.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { invalid, Problem, type Issue } from "./problem.ts";
import type { Route, Values } from "./route.ts";

// A body, parsed once. requestId: its request_id, which an error answer repeats even if the rest of the body is
// invalid. It is logged, so it contains no code. It is null if it is not usable.
export type Input = { values: Values; requestId: string | null } | { error: unknown; requestId: null };
export type Request = {
  query: string;
  segments: Record<string, string>;
  idempotencyKeys: string[];
  body: Uint8Array;
  input: Input;
};
// hashBy returns the hash of the body under another master key of the list.
export type Reading = Pick<Call, "operation" | "idempotency_key" | "body_hash" | "args"> & {
  hashBy: (version: string) => string;
};

export function readCall(route: Route, variant: Variant, request: Request, keys: MasterKeys): Reading {
  const given = [...new URLSearchParams(request.query)];
  refuseCodes(createCodeFinder(keys), listPlaces(route, request, given));
  const issues: Issue[] = [];
  const parameters = readQuery(given, route.query ?? [], issues);
  const idempotencyKey = route.isWrite ? readIdempotencyKey(request.idempotencyKeys, issues) : null;
  const input = route.method === "POST" ? valuesOf(request.input) : { ...parameters, ...request.segments };
  if (route.method === "GET" && request.body.length > 0)
    issues.push({ path: "(body)", message: "a GET takes no body" });
  const parsed = route.schema(variant).safeParse(input);
  if (!parsed.success) issues.push(...listIssues(parsed.error, input));
  if (!parsed.success || issues.length > 0) throw invalid(issues.slice(0, maxIssues));

  const values = parsed.data;
  return {
    operation: route.operation,
    idempotency_key: idempotencyKey,
    body_hash: route.isWrite ? hashBody(keys, values) : null,
    hashBy: (version) => hashBody(keys, values, version),
    args: readArgs(route, values, keys),
  };
}

export function parseInput(body: Uint8Array, keys: MasterKeys): Input {
  try {
    const values = parseObject(body);
    const { success, data } = requestId.safeParse(values["request_id"]);
    return { values, requestId: success && !containsCode(keys, data) ? data : null };
  } catch (error) {
    return { error, requestId: null };
  }
}

function valuesOf(input: Input): Values {
  if ("error" in input) throw input.error;
  return input.values;
}

type Parameters = [name: string, value: string][];

// All texts of a request, decoded.
function listPlaces(route: Route, { segments, idempotencyKeys, input }: Request, parameters: Parameters): Place[] {
  // Each parameter is an object, because a name may occur twice.
  const one = (name: string, value: string): Place => ({ path: "", value: { [name]: value } });
  return [
    ...(route.method === "POST" ? [{ path: "", value: leaveOutSearched(input) }] : []),
    ...Object.entries(segments).map(([name, segment]) => one(name, decode(segment))),
    ...parameters.map(([name, value]) => one(name, value)),
    ...idempotencyKeys.map((key) => ({ path: "idempotency-key", value: decodeHeader(key) })),
  ];
}

// Leaves out the coupon's code, and a request_id that has no code.
function leaveOutSearched(input: Input): Values {
  const { coupon: _, ...fields } = valuesOf(input);
  if (input.requestId === null) return fields;
  const { request_id: __, ...rest } = fields;
  return rest;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

// Node decodes header bytes as Latin-1, but a caller sends text beyond ASCII as UTF-8.
function decodeHeader(value: string): string {
  return Buffer.from(value, "latin1").toString("utf8");
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

function readQuery(parameters: Parameters, known: readonly string[], issues: Issue[]): Values {
  const values: Values = {};
  for (const [name, value] of parameters) {
    if (!known.includes(name)) issues.push({ path: safeName(name), message: "unknown query parameter" });
    else if (name in values) issues.push({ path: name, message: "duplicate query parameter" });
    else values[name] = value;
  }
  return values;
}

function readIdempotencyKey(given: string[], issues: Issue[]): string | null {
  if (given.length === 0) return null;
  const key = decodeHeader(given[0]!);
  if (given.length === 1 && !key.includes("\ufffd") && requestId.safeParse(key).success) return key;
  issues.push({ path: "idempotency-key", message: "the header must be 1 to 128 printable characters" });
  return null;
}
