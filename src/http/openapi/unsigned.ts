// The operations that need no signature: health checks, these documents, and the page that shows them.
import type { Examples } from "./examples.ts";
import type { Json, SchemaWriter } from "./json-schema.ts";
import { describeRefusals, pickHeaders } from "./responses.ts";
import { z } from "zod";
import type { ErrorCode } from "../errors.ts";

// isFile: it has an etag.
type Unsigned = {
  isFile?: true;
  operation: string;
  path: string;
  summary: string;
  types: string[];
  schema: z.ZodType;
  refusals: readonly ErrorCode[];
};

const okSchema = z.object({ ok: z.literal(true) });
const json = "application/json";

const unsigned: readonly Unsigned[] = [
  {
    operation: "healthz",
    path: "/healthz",
    summary: "The process runs.",
    types: [json],
    schema: okSchema,
    refusals: [],
  },
  {
    operation: "readyz",
    path: "/readyz",
    summary: "The database is reachable and migrated, and has the master keys of the service.",
    types: [json],
    schema: okSchema,
    refusals: ["UNAVAILABLE"],
  },
  ...(["a", "b"] as const).map((letter) => ({
    operation: `openapi_${letter}`,
    path: `/openapi/${letter}.json`,
    summary: `The description of the API for tenants of Variant ${letter.toUpperCase()}.`,
    isFile: true as const,
    types: [json],
    schema: z.looseObject({ openapi: z.string() }),
    refusals: ["ROUTE_NOT_FOUND"] as const,
  })),
  {
    operation: "docs",
    path: "/docs",
    summary: "A page that shows these documents.",
    isFile: true,
    types: ["text/html"],
    schema: z.string(),
    refusals: ["ROUTE_NOT_FOUND"],
  },
  {
    operation: "docs_file",
    path: "/docs/{file}",
    summary: "A script or style sheet of the page.",
    isFile: true,
    types: ["text/javascript", "text/css"],
    schema: z.string(),
    refusals: ["ROUTE_NOT_FOUND"],
  },
];

export function describeUnsigned(write: SchemaWriter["write"], examples: Examples): Json {
  return Object.fromEntries(
    unsigned.map(({ operation, path, summary, types, schema, refusals, isFile }) => [
      path,
      {
        get: {
          operationId: operation,
          summary,
          tags: ["service"],
          security: [],
          ...(path.includes("{file}") && {
            parameters: [{ name: "file", in: "path", required: true, schema: { type: "string" } }],
          }),
          responses: {
            200: {
              description: "Done.",
              headers: pickHeaders("x-request-id"),
              content: Object.fromEntries(types.map((type) => [type, { schema: write(schema) }])),
            },
            ...(isFile && { 304: { description: "The file has not changed.", headers: pickHeaders("x-request-id") } }),
            ...describeRefusals(
              { codes: ["INVALID_REQUEST", ...refusals, "INTERNAL_ERROR"], resources: [], isWrite: false },
              write,
              examples,
            ),
          },
        },
      },
    ]),
  );
}
