// The responses of an operation: one per status, with one schema for each error code.
import { z } from "zod";
import { errors, type ErrorCode, type ErrorEntry, type Resource } from "../errors.ts";
import type { Examples } from "./examples.ts";
import { toTypeName, type Json, type SchemaWriter } from "./json-schema.ts";

type Refusals = { codes: readonly ErrorCode[]; resources: readonly Resource[]; isWrite: boolean };

export const headers: Json = {
  "x-request-id": {
    description: "The request_id of the caller, else one that the service made. The operator finds it in the log.",
    required: true,
    schema: { type: "string" },
  },
  "idempotent-replayed": {
    description: "`true`: this is the recorded answer to an earlier request with the same request_id.",
    schema: { type: "string", const: "true" },
  },
  "retry-after": { description: "Seconds.", required: true, schema: { type: "integer", minimum: 1 } },
  ratelimit: {
    description: "What is left of the limits that apply to the credential. Absent if none applies.",
    schema: { type: "string" },
  },
  "ratelimit-policy": { description: "The limits, as in `ratelimit`.", schema: { type: "string" } },
  allow: { description: "The methods of the path. Only in a 405.", schema: { type: "string" } },
};

export const pickHeaders = (...names: string[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** The refusals of an operation by status. */
export function describeRefusals(
  { codes, resources, isWrite }: Refusals,
  write: SchemaWriter["write"],
  examples: Examples,
): Json {
  const byStatus = Map.groupBy(codes, (code) => errors[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => {
      const shown = group.flatMap((code) =>
        code === "NOT_FOUND" ? resources.map((resource) => `NOT_FOUND.${resource}`) : [code],
      );
      return [
        status,
        {
          description: group.map((code) => `\`${code}\`: ${meaningOf(code, resources)}`).join("\n\n"),
          headers: pickHeaders(
            "x-request-id",
            ...(status === 429 || status === 503 ? ["retry-after"] : []),
            ...(status === 429 ? ["ratelimit", "ratelimit-policy"] : []),
            ...(isWrite && (status === 404 || status === 409 || status === 422) ? ["idempotent-replayed"] : []),
          ),
          content: describeContent(group, shown, write, examples),
        },
      ];
    }),
  );
}

/** What a request can get that reaches no operation: the `default` of every operation. */
export function describeOther(write: SchemaWriter["write"], examples: Examples): Json {
  const codes: ErrorCode[] = [
    "ROUTE_NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "PAYLOAD_TOO_LARGE",
    "INVALID_REQUEST",
    "UNAVAILABLE",
  ];
  return {
    description:
      "Any other answer. A path that does not exist: 404 `ROUTE_NOT_FOUND`. A method that the path does not have: " +
      "405 `METHOD_NOT_ALLOWED`. Input that is not HTTP, or too slow: 400 or 408 `INVALID_REQUEST`. Headers above " +
      "16 KiB: 431 `PAYLOAD_TOO_LARGE`. A transfer coding other than `chunked`: 501 `INVALID_REQUEST`. A version " +
      "other than HTTP/1: 505 `INVALID_REQUEST`. The service is starting: 503 `UNAVAILABLE`.",
    headers: pickHeaders("x-request-id", "allow"),
    content: describeContent(codes, codes, write, examples),
  };
}

/** `shown`: the names of the examples, of which some do not exist. */
function describeContent(
  codes: readonly ErrorCode[],
  shown: readonly string[],
  write: SchemaWriter["write"],
  examples: Examples,
): Json {
  const references = shown
    .filter((name) => name in examples.errors)
    .map((name) => [name, { $ref: `#/components/examples/${name}` }]);
  return { "application/json": { schema: describeErrors(codes, write), examples: Object.fromEntries(references) } };
}

/** One of several errors, told apart by `code`. UnknownError keeps it open for codes that come later. */
function describeErrors(codes: readonly ErrorCode[], write: SchemaWriter["write"]): Json {
  const known = codes.map((code) => {
    const { meaning, details = z.null() } = errors[code] as ErrorEntry;
    return [code, write(errorSchema(z.literal(code), details, meaning).meta({ id: nameOf(code) }))] as const;
  });
  // Some generators want each schema in the mapping. A schema has its own name as a value of the property in any case.
  const all = [...known, ["UnknownError", write(unknownError)] as const];
  return {
    oneOf: all.map(([, reference]) => reference),
    discriminator: { propertyName: "code", mapping: Object.fromEntries(all.map(([code, { $ref }]) => [code, $ref])) },
  };
}

/** COUPON_EXPIRED is CouponExpiredError. CouponExpired is an event, and generators do not keep the case of names. */
function nameOf(code: ErrorCode): string {
  const name = toTypeName(code.toLowerCase());
  return name.endsWith("Error") ? name : `${name}Error`;
}

function meaningOf(code: ErrorCode, resources: readonly Resource[]): string {
  if (code !== "NOT_FOUND") return errors[code].meaning;
  return `\`details.resource\` names what is missing: ${resources.join(", ")}.`;
}

function errorSchema(code: z.ZodType, details: z.ZodType, description: string) {
  return z.object({ code, message: z.string(), request_id: z.string(), details }).meta({ description });
}

const unknownError = errorSchema(
  z.string().meta({ not: { enum: Object.keys(errors) } }),
  z.unknown(),
  "A code that is newer than this document. Decide by the status.",
).meta({ id: "UnknownError" });
