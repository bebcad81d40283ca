// The operation object of a route: parameters, body and responses.
import type { Variant } from "../../gate/gate.ts";
import type { Route } from "../route.ts";
import type { Examples } from "./examples.ts";
import { toTypeName, type Json, type SchemaWriter } from "./json-schema.ts";
import { listRefusals } from "./refusals.ts";
import { describeRefusals, pickHeaders } from "./responses.ts";

export type Parts = {
  variant: Variant;
  examples: Examples;
  write: SchemaWriter["write"];
  define: SchemaWriter["define"];
};

export function describeOperation(route: Route, parts: Parts): Json {
  const { variant, examples, write, define } = parts;
  const example = examples.operations[variant][route.operation];
  const codes = listRefusals(route, variant);
  return {
    operationId: route.operation,
    summary: route.summary,
    description: route.description,
    tags: [tagOf(route)],
    ...(route.method === "GET" && { parameters: describeInput(route, write(route.schema(variant))) }),
    ...(route.isWrite && { parameters: [{ $ref: "#/components/parameters/idempotency-key" }] }),
    ...(route.method === "POST" && {
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: define(`${toTypeName(route.operation)}Input`, route.schema(variant)),
            ...(example !== undefined && { examples: { recorded: { value: example.request } } }),
          },
        },
      },
    }),
    responses: {
      ...(route.download ? describeDownload(route.download) : describeSuccess(route, parts, example?.answer)),
      ...describeRefusals(
        { codes, resources: route.resources?.(variant) ?? [], isWrite: route.isWrite },
        write,
        examples,
      ),
      default: { $ref: "#/components/responses/Other" },
    },
  };
}

/** `/v1/coupons/lock` has the tag coupons. */
export function tagOf({ path }: Pick<Route, "path">): string {
  return path.split("/")[2]!;
}

/** The input of a GET is its path and query. */
function describeInput({ path, query = [] }: Route, { properties, required = [] }: Json): Json[] {
  return Object.entries(properties as Record<string, Json>).map(([name, { description, ...schema }]) => ({
    name,
    in: path.includes(`{${name}}`) ? "path" : "query",
    required: !query.includes(name) || (required as string[]).includes(name),
    ...(description !== undefined && { description }),
    schema,
  }));
}

function describeSuccess(route: Route, { variant, define }: Parts, answer: unknown): Json {
  return {
    200: {
      description: "Done.",
      headers: pickHeaders(
        "x-request-id",
        ...(route.isWrite ? ["idempotent-replayed"] : []),
        "ratelimit",
        "ratelimit-policy",
      ),
      content: {
        "application/json": {
          schema: define(`${toTypeName(route.operation)}Answer`, route.answer(variant)),
          ...(answer !== undefined && { examples: { recorded: { value: answer } } }),
        },
      },
    },
  };
}

function describeDownload(kind: NonNullable<Route["download"]>): Json {
  const disposition = { description: "The name of the file.", required: true, schema: { type: "string" } };
  const headers = { ...pickHeaders("x-request-id"), "content-disposition": disposition };
  if (kind === "codes")
    return {
      200: {
        description: "The file: CSV with the columns coupon_id and code, encrypted by age to your public key.",
        headers,
        content: { "application/octet-stream": { schema: { type: "string", format: "binary" } } },
      },
    };
  const etag = { description: "The sha256 of the file, in quotes.", required: true, schema: { type: "string" } };
  return {
    200: {
      description: "The file.",
      headers: { ...headers, etag },
      content: { "text/csv": { schema: { type: "string" } } },
    },
    304: {
      description: "The file is the one whose `etag` the request sent as `if-none-match`.",
      headers: { ...pickHeaders("x-request-id"), etag },
    },
  };
}

export const parameters: Json = {
  "idempotency-key": {
    name: "idempotency-key",
    in: "header",
    required: false,
    description: "Another name for the request. Send the same text as request_id.",
    schema: { type: "string", minLength: 1, maxLength: 128 },
  },
};
