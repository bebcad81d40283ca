// The responses of an operation: one per status, with one schema for each error code.
import { z } from "zod";
import { errors, type ErrorCode, type ErrorEntry, type Resource } from "../errors.ts";
import type { Examples } from "./examples.ts";
import type { Json, SchemaWriter } from "./json-schema.ts";

export type Refusals = { codes: readonly ErrorCode[]; resources: readonly Resource[]; isWrite: boolean };

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
  allow: { description: "The methods of the path.", required: true, schema: { type: "string" } },
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
      const schemas = group.map((code) => describeError(code, resources, write));
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
          content: {
            "application/json": {
              schema: schemas.length === 1 ? schemas[0] : { oneOf: schemas },
              examples: Object.fromEntries(
                shown
                  .filter((name) => name in examples.errors)
                  .map((name) => [name, { $ref: `#/components/examples/${name}` }]),
              ),
            },
          },
        },
      ];
    }),
  );
}

/** A NOT_FOUND of an operation names only some resources, so it is no component. */
function describeError(code: ErrorCode, resources: readonly Resource[], write: SchemaWriter["write"]): Json {
  if (code === "NOT_FOUND") return write(errorSchema(code, z.object({ resource: z.enum(resources) })));
  return write(errorSchema(code, (errors[code] as ErrorEntry).details ?? z.null()).meta({ id: code }));
}

function meaningOf(code: ErrorCode, resources: readonly Resource[]): string {
  if (code !== "NOT_FOUND") return errors[code].meaning;
  return `\`details.resource\` names what is missing: ${resources.join(", ")}.`;
}

function errorSchema(code: ErrorCode, details: z.ZodType) {
  return z
    .object({ code: z.literal(code), message: z.string(), request_id: z.string(), details })
    .meta({ description: errors[code].meaning });
}
