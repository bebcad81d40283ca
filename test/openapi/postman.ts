// Makes the Postman collections of docs/examples from docs/openapi: every operation of a variant by tag, with a script
// that signs. For Variant B also one coupon's life, whose requests run in their order.
import { readFileSync } from "node:fs";
import type { Variant } from "../../src/gate/gate.ts";
import type { Json } from "./client-types.ts";
import { life, type Step } from "./postman-life.ts";

const readScript = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8").trimEnd();
const toEvent = (listen: "prerequest" | "test", text: string): Json => ({
  listen,
  script: { type: "text/javascript", exec: text.split("\n") },
});

// The values of the demo tenants. What is empty the reader sets, or a request keeps from an answer.
const kept = ["code", "coupon_id", "batch", "lock_request_id", "redemption", "event_id", "date"];
const variables: Record<Variant, Record<string, string>> = {
  A: {
    access_key: "ak_demo_a",
    secret: "",
    merchant: "mch_bakery",
    template: "tpl_tenpercent",
  },
  B: {
    access_key: "ak_demo_pos",
    secret: "",
    maker: "ak_demo_maker",
    maker_secret: "",
    till: "ak_demo_pos",
    till_secret: "",
    distributor: "ak_demo_dist",
    distributor_secret: "",
    merchant: "mch_corner",
    template: "tpl_fiveoff",
  },
};

/** The text of a collection (format v2.1). */
export function renderCollection(document: Json, variant: Variant): string {
  const operations = listOperations(document);
  const byTag = Map.groupBy(operations, ({ tags }) => tags[0] as string);
  const folders = [...byTag].map(([tag, group]) => ({
    name: tag,
    description: document["tags"].find(({ name }: Json) => name === tag).description,
    item: group.map((operation) => describeItem(operation)),
  }));
  const collection = {
    info: {
      name: `Coupon service, Variant ${variant}`,
      description: "Made from the API description of the service. docs/examples/README.md says how to use it.",
      schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
    },
    variable: Object.entries({ url: "http://127.0.0.1:8080", ...variables[variant], ...emptyValues() }).map(
      ([key, value]) => ({ key, value }),
    ),
    event: [toEvent("prerequest", readScript("postman-sign.js")), toEvent("test", readScript("postman-keep.js"))],
    item: [...(variant === "B" ? describeLife(operations) : []), ...folders],
  };
  return `${JSON.stringify(collection, null, 2)}\n`;
}

const emptyValues = (): Record<string, string> => Object.fromEntries(kept.map((name) => [name, ""]));

function listOperations({ paths }: Json): Json[] {
  return Object.entries<Json>(paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

// The fields and parameters that have the name of a variable, or of something like it.
const placeholders: Record<string, string> = {
  request_id: "request_id",
  coupon: "code",
  batch: "batch",
  merchant: "merchant",
  template: "template",
  redemption: "redemption",
  lock_request_id: "lock_request_id",
  event_id: "event_id",
  date: "date",
};

type Changes = Partial<Pick<Step, "caller" | "body" | "query">> & { name?: string; events?: Json[] };

function describeItem(operation: Json, changes: Changes = {}): Json {
  const { operationId, summary, description, method } = operation;
  const { name = operationId, caller = "access_key", query = {}, events } = changes;
  const content = operation["requestBody"]?.content["application/json"];
  const body = changes.body ?? fill(content?.examples.recorded.value ?? {});
  return {
    name,
    ...(events !== undefined && { event: events }),
    request: {
      method,
      description: `${summary} ${description}`,
      header: [
        { key: "x-svc-access-key", value: `{{${caller}}}` },
        ...(content === undefined ? [] : [{ key: "content-type", value: "application/json" }]),
      ],
      url: describeUrl(operation, query),
      ...(content !== undefined && { body: { mode: "raw", raw: JSON.stringify(body, null, 2) } }),
    },
  };
}

const fill = (body: Json): Json =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, name in placeholders ? `{{${placeholders[name]}}}` : value]),
  );

function describeUrl({ path, operationId, parameters = [] }: Json, values: Record<string, string>): Json {
  const segments = (path as string).slice(1).split("/");
  const filled = segments.map((segment) =>
    segment.replace(/\{(\w+)\}/, (_, name: string) => {
      if (name === "kind") return "summary";
      // get_request asks for an earlier request, not for itself.
      return `{{${operationId === "get_request" ? "lock_request_id" : placeholders[name]}}}`;
    }),
  );
  const query = (parameters as Json[])
    .filter((parameter) => parameter["in"] === "query")
    .map(({ name, required, description }) => ({
      key: name,
      value: values[name] ?? (name in placeholders ? `{{${placeholders[name]}}}` : ""),
      ...(description !== undefined && { description }),
      ...(!required && values[name] === undefined && { disabled: true }),
    }));
  const sent = query.filter(({ disabled }) => !disabled).map(({ key, value }) => `${key}=${value}`);
  return {
    raw: `{{url}}/${filled.join("/")}${sent.length > 0 ? `?${sent.join("&")}` : ""}`,
    host: ["{{url}}"],
    path: filled,
    ...(query.length > 0 && { query }),
  };
}

/** Two folders: between them, a command of the operator prints the code. */
function describeLife(operations: Json[]): Json[] {
  let number = 0;
  const toItem = ({ operation, does, before, test, ...step }: Step): Json => {
    const events = [...(before === undefined ? [] : [toEvent("prerequest", before)]), toEvent("test", test)];
    number += 1;
    const described = operations.find(({ operationId }) => operationId === operation)!;
    return describeItem(described, { ...step, name: `${number}. ${operation}: ${does}`, events });
  };
  return life.map(({ name, description, steps }) => ({ name, description, item: steps.map(toItem) }));
}
