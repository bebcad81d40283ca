// Makes the API description of a variant (OpenAPI 3.1) from the routes. The schemas are those that check requests.
import type { Variant } from "../../gate/gate.ts";
import { authHeaders } from "../../crypto/request-signature.ts";
import type { EventType, Route } from "../route.ts";
import type { Examples } from "./examples.ts";
import { writeGuide } from "./guide.ts";
import { createSchemaWriter, type Json } from "./json-schema.ts";
import { describeOperation, parameters, tagOf } from "./operation.ts";
import { describeOther, headers } from "./responses.ts";
import { describeWebhooks } from "./webhooks.ts";

export type Described = { routes: readonly Route[]; events: readonly EventType[]; examples: Examples };

// Signing is described here alone: as header parameters too, generators would ask each caller of a method for them.
const purposes: Record<keyof typeof authHeaders, string> = {
  "x-svc-access-key": "Your access key.",
  "x-svc-timestamp": "The current time in Unix seconds, 10 digits, at most 300 seconds off.",
  "x-svc-nonce": "16 to 64 characters of `A-Z a-z 0-9 _ -`, new for every request.",
  "x-svc-signature":
    "The signature, 64 lower-case hexadecimal digits. It covers the request, so sign each one just before it is " +
    "sent; the description of this document says how.",
};

const tags: Record<string, string> = {
  coupons: "What a till does with a coupon.",
  redemptions: "Redemptions: take them back, find them, reconcile a till.",
  batches: "What a maker does with its batches.",
  requests: "The outcome of a write whose answer was lost.",
  events: "The events of your coupons, in one order without gaps.",
  reconciliations: "The statements of closed business days.",
  sandbox: "Only in tenants for rehearsals.",
  webhook: "Your webhook: its state, events again, a test.",
  portal: "Your pages, in a browser.",
  webhooks: "What the service sends to your webhook.",
};

export function createDocument({ routes, events, examples }: Described, variant: Variant): Json {
  const { components, write, define } = createSchemaWriter();
  const paths = describePaths(routes, (route) => describeOperation(route, { variant, examples, write, define }));
  const webhooks = describeWebhooks(events, write, examples);
  const responses = { Other: describeOther(write, examples) };
  const shown = JSON.stringify({ paths, responses });
  return {
    openapi: "3.1.0",
    info: {
      title: `Coupon service, Variant ${variant}`,
      version: "1",
      contact: { name: "The operator of the service" },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: writeGuide(variant),
    },
    servers: [{ url: "/", description: "The service that serves this document." }],
    security: [Object.fromEntries(Object.keys(authHeaders).map((name) => [name, []]))],
    tags: [...new Set(routes.map(tagOf)), "webhooks"].map((name) => ({ name, description: tags[name] })),
    paths,
    webhooks,
    components: {
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      parameters,
      headers,
      examples: Object.fromEntries(
        Object.entries(examples.errors)
          .filter(([name]) => shown.includes(`"#/components/examples/${name}"`))
          .map(([name, value]) => [name, { value }]),
      ),
      securitySchemes: Object.fromEntries(
        Object.entries(purposes).map(([name, description]) => [
          name,
          { type: "apiKey", in: "header", name, description },
        ]),
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
