// Makes the API description of a variant (OpenAPI 3.1) from the routes. The schemas are those that check requests.
import type { Variant } from "../../gate/gate.ts";
import { authHeaders } from "../../crypto/request-signature.ts";
import { errors, type ErrorCode } from "../errors.ts";
import type { EventType, Route } from "../route.ts";
import type { Examples } from "./examples.ts";
import { writeGuide } from "./guide.ts";
import { createSchemaWriter, type Json, type SchemaWriter } from "./json-schema.ts";
import { describeOperation, parameters, tagOf } from "./operation.ts";
import { describeRefusals, headers, pickHeaders } from "./responses.ts";
import { describeUnsigned } from "./unsigned.ts";
import { describeWebhooks } from "./webhooks.ts";

export type Described = { routes: readonly Route[]; events: readonly EventType[]; examples: Examples };

export function createDocument({ routes, events, examples }: Described, variant: Variant): Json {
  const { components, write } = createSchemaWriter();
  const paths = {
    ...describePaths(routes, (route) => describeOperation(route, { variant, examples, write })),
    ...describeUnsigned(write, examples),
  };
  const webhooks = describeWebhooks(events, write, examples);
  const responses = describeResponses(write, examples);
  return {
    openapi: "3.1.0",
    info: {
      title: `Coupon service, Variant ${variant}`,
      version: "1",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: writeGuide(variant),
    },
    servers: [{ url: "/", description: "The service that serves this document." }],
    security: [Object.fromEntries(Object.keys(authHeaders).map((name) => [name, []]))],
    tags: [...new Set(routes.map(tagOf)), "service", "webhooks"].map((name) => ({ name })),
    paths,
    webhooks,
    components: {
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      parameters,
      headers,
      examples: Object.fromEntries(Object.entries(examples.errors).map(([name, value]) => [name, { value }])),
      securitySchemes: Object.fromEntries(
        Object.keys(authHeaders).map((name) => [name, { type: "apiKey", in: "header", name }]),
      ),
    },
  };
}

function describePaths(routes: readonly Route[], describe: (route: Route) => Json): Json {
  const byPath = Map.groupBy(routes, ({ path }) => path);
  return Object.fromEntries(
    [...byPath].map(([path, group]) => [
      path,
      Object.fromEntries(group.map((route) => [route.method.toLowerCase(), describe(route)])),
    ]),
  );
}

// Answers to requests that reach no operation.
function describeResponses(write: SchemaWriter["write"], examples: Examples): Json {
  const one = (code: ErrorCode) =>
    describeRefusals({ codes: [code], resources: [], isWrite: false }, write, examples)[errors[code].status] as Json;
  return {
    RouteNotFound: one("ROUTE_NOT_FOUND"),
    MethodNotAllowed: { ...one("METHOD_NOT_ALLOWED"), headers: pickHeaders("x-request-id", "allow") },
    NotHttp: one("INVALID_REQUEST"),
    TooSlow: one("INVALID_REQUEST"),
    HeadersTooLarge: one("PAYLOAD_TOO_LARGE"),
    UnknownTransferCoding: one("INVALID_REQUEST"),
    UnknownVersion: one("INVALID_REQUEST"),
    Starting: one("UNAVAILABLE"),
  };
}
