// Makes the types of clients/typescript from docs/openapi: for each variant the inputs and answers of the operations,
// for both the error codes, the events, and the method and path of each operation.
import path from "node:path";
import { compile, type JSONSchema } from "json-schema-to-typescript";
import { format } from "prettier";
import { routes } from "../../src/http/routes/table.ts";

export type Json = Record<string, any>;
type Operation = { name: string; method: string; path: string; described: Json };

export const folder = "clients/typescript/src/generated";

/** Returns the text of each file by its path in the project. */
export async function renderClientTypes(documents: { A: Json; B: Json }): Promise<Record<string, string>> {
  const both = [documents.A, documents.B];
  const files = {
    "variant-a.ts": await renderTypes(documents.A["components"].schemas, describeOperations(documents.A)),
    "variant-b.ts": await renderTypes(documents.B["components"].schemas, describeOperations(documents.B)),
    "errors-and-events.ts": await renderTypes(documents.A["components"].schemas, {
      Errors: describeErrors(both),
      // Both variants send the same events.
      WebhookEvent: { oneOf: listEvents(documents.A) },
    }),
    "operations.ts": renderTable(both),
  };
  const made = Object.entries(files).map(async ([name, text]) => {
    const banner = "// Generated from docs/openapi by `npm run openapi`. Do not edit.";
    const formatted = await format(`${banner}\n${text}`, { parser: "typescript", printWidth: 120 });
    return [path.posix.join(folder, name), formatted] as const;
  });
  return Object.fromEntries(await Promise.all(made));
}

/** `create_batch` is the method createBatch. */
const toMethod = (operation: string): string =>
  operation.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const toType = (method: string): string => method[0]!.toUpperCase() + method.slice(1);

const listOperations = ({ paths }: Json): Operation[] =>
  routes.map(({ operation, method, path }) => {
    const described = paths[path][method.toLowerCase()];
    return { name: toMethod(operation), method, path, described };
  });

const listParameters = ({ described }: Operation): Json[] =>
  ((described["parameters"] ?? []) as Json[]).filter(({ name }) => name !== undefined);

/** Two interfaces: operations that answer with JSON, and downloads. Their members are named types. */
function describeOperations(document: Json): Record<string, Json> {
  const resolve = (schema: Json): Json => document["components"].schemas[schema["$ref"].split("/").at(-1)];
  const types: Record<string, Json> = { Operations: closed({}), Downloads: closed({}) };
  for (const operation of listOperations(document)) {
    const { name, described } = operation;
    const answer = described["responses"]["200"].content["application/json"]?.schema;
    const body = described["requestBody"]?.content["application/json"].schema as Json | undefined;
    const parts: Record<string, Json> = {
      input: body === undefined ? readParameters(operation) : resolve(body),
      ...(answer !== undefined && { answer: resolve(answer) }),
    };
    for (const [part, schema] of Object.entries(parts)) types[toType(name) + toType(part)] = schema;
    const references = Object.keys(parts).map((part) => [
      part,
      { $ref: `#/definitions/${toType(name)}${toType(part)}` },
    ]);
    const owner = types[answer === undefined ? "Downloads" : "Operations"]!;
    owner["properties"][name] = { ...closed(Object.fromEntries(references)), description: described["summary"] };
    owner["required"].push(name);
  }
  return types;
}

function readParameters(operation: Operation): Json {
  const parameters = listParameters(operation);
  // How to write a segment of the path is the client's business.
  const fields = parameters.map(({ name, in: place, description, schema }) => [
    name,
    { ...schema, ...(place === "query" && { description }) },
  ]);
  const required = parameters.filter((one) => one["required"]).map(({ name }) => name as string);
  return { ...closed(Object.fromEntries(fields)), required };
}

const closed = (properties: Json): Json => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** An interface with the type of `details` for each error code. */
function describeErrors(documents: Json[]): Json {
  const found: Record<string, Json> = {};
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { properties, description } = value as Json;
    const code = properties?.code?.const as string | undefined;
    if (code !== undefined) found[code] = { ...properties.details, description };
    Object.values(value).forEach(visit);
  };
  documents.forEach(visit);
  return closed(Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1))));
}

const listEvents = ({ webhooks }: Json): Json[] =>
  Object.values(webhooks as Record<string, Json>).map(
    ({ post }) => post.requestBody.content["application/json"].schema,
  );

async function renderTypes(components: Record<string, Json>, types: Record<string, Json>): Promise<string> {
  const used = JSON.stringify({ ...findUsed(components, types), ...types });
  const definitions = JSON.parse(used.replaceAll("#/components/schemas/", "#/definitions/")) as Record<
    string,
    JSONSchema
  >;
  const text = await compile({ title: "Root", type: "object", definitions }, "", {
    bannerComment: "",
    additionalProperties: false,
    format: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
  });
  return text
    .replace(/^export interface Root \{\s*\}$/m, "")
    .replace(/^ \* This (?:interface|type) was referenced by `Root`.*\n \* via .*\n/gm, "")
    .replace(/^ *\* @(?:min|max)Items.*\n/gm, "")
    .replace(/^\/\*\*\n \*\/\n/gm, "")
    .replace(/^\/\*\*\n \* (.*)\n \*\/$/gm, "/** $1 */");
}

/** The components that `types` refer to, directly or not. */
function findUsed(components: Record<string, Json>, types: unknown): Record<string, Json> {
  const references = JSON.stringify(types).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
  const found = [...references].map(([, name = ""]) => ({
    ...findUsed(components, components[name]),
    [name]: components[name]!,
  }));
  return Object.assign({}, ...found) as Record<string, Json>;
}

function renderTable(documents: Json[]): string {
  const table: Record<string, Json> = {};
  for (const operation of documents.flatMap(listOperations)) {
    const { name, method, path: at } = operation;
    const query = listParameters(operation)
      .filter((one) => one["in"] === "query")
      .map((one) => one["name"] as string);
    table[name] = { method, path: at, query: [...new Set([...(table[name]?.["query"] ?? []), ...query])] };
  }
  return `export const operations = ${JSON.stringify(table)} as const;`;
}
