// Checks answers against the committed API description (docs/openapi): by variant, operation, status and error code.
// There the objects of answers are open, so that clients ignore new fields. Here they are closed, so that a new field
// must be described.
import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Variant } from "../../src/gate/gate.ts";
import { splitTarget } from "../../src/http/router.ts";
import { root } from "./copy.ts";
import type { Answered } from "./watch-servers.ts";

type Json = Record<string, any>;
/** The text of the document of each variant. */
export type Documents = Record<Variant, string>;
type Described = { document: Json; validate(pointer: string, value: unknown): string | null };

const loaded = new Map<string, Described>();
let ownDocuments: Documents | null = null;

/** Of this checkout, or of a copy, which may be another version. */
export function readDocuments(folder = root): Documents {
  const read = (name: string) => readFileSync(path.join(folder, `docs/openapi/${name}.json`), "utf8");
  return { A: read("a"), B: read("b") };
}

export function readDescription(variant: Variant, documents = (ownDocuments ??= readDocuments())): Described {
  const text = documents[variant];
  let described = loaded.get(text);
  if (described === undefined) loaded.set(text, (described = load(text)));
  return described;
}

function load(text: string): Described {
  const document = close(JSON.parse(text)) as Json;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(document, "api");
  const compiled = new Map<string, ValidateFunction>();
  return {
    document,
    validate(pointer, value) {
      let check = compiled.get(pointer);
      if (check === undefined) compiled.set(pointer, (check = ajv.compile({ $ref: `api#${pointer}` })));
      return check(value) ? null : ajv.errorsText(check.errors, { dataVar: "" });
    },
  };
}

function close(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(close);
  const closed = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, close(field)]));
  return closed["type"] === "object" && "properties" in closed ? { additionalProperties: false, ...closed } : closed;
}

/** What is wrong with an answer; null: nothing. A variant of null is not known, so either will do. */
export function findUndescribed(variant: Variant | null, answered: Answered, documents?: Documents): string | null {
  if (variant !== null) return check(readDescription(variant, documents), answered);
  return check(readDescription("A", documents), answered) && check(readDescription("B", documents), answered);
}

function check({ document, validate }: Described, { request, status, headers, text }: Answered): string | null {
  const [name, pointers] = findResponses(document, request);
  const fail = (what: string) => `${name}, ${status}: ${what}: ${text.slice(0, 500)}`;
  const pointer = pointers.map((each) => each(status)).find((each) => lookUp(document, each) !== undefined);
  if (pointer === undefined) return fail("no such status is described");
  const { content, headers: described = {} } = lookUp(document, pointer) as Json;
  for (const [header, reference] of Object.entries(described as Json)) {
    const { required, schema } = reference.$ref === undefined ? reference : lookUp(document, reference.$ref.slice(1));
    if (required && headers[header] === undefined) return fail(`no header ${header}`);
    if (schema.const !== undefined && ![undefined, schema.const].includes(headers[header] as string))
      return fail(`header ${header}`);
  }
  if (request?.method === "HEAD" || content === undefined) return null;
  const type = Object.keys(content).find((each) => String(headers["content-type"]).startsWith(each));
  if (type === undefined) return fail(`not ${Object.keys(content).join(" or ")}`);
  if (type !== "application/json") return null;
  const value = parse(text);
  const wrong = value === undefined ? "not JSON" : validate(`${pointer}/content/application~1json/schema`, value);
  return wrong === null ? null : fail(wrong);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Pointer = (status: number) => string;

const components: Record<number, string[]> = {
  400: ["NotHttp"],
  404: ["RouteNotFound"],
  405: ["MethodNotAllowed"],
  408: ["TooSlow"],
  431: ["HeadersTooLarge"],
  503: ["Starting"],
};
const ofComponents: Pointer = (status) => `/components/responses/${components[status]?.[0]}`;

// The name of the operation, and where its responses are.
function findResponses(document: Json, request: Answered["request"]): [string, Pointer[]] {
  if (request === null) return ["no request", [ofComponents]];
  const target = splitTarget(request.target).path;
  const method = request.method === "HEAD" ? "get" : request.method.toLowerCase();
  const found = matchPath(document, target);
  const operation = found === undefined ? undefined : document["paths"][found][method];
  if (operation === undefined) return [`${request.method} ${target}`, [ofComponents]];
  const place = `/paths/${found!.replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D")}/${method}`;
  return [operation.operationId, [(status) => `${place}/responses/${status}`]];
}

const patterns = new WeakMap<Json, [RegExp, string][]>();

/** The path of the document that fits. A fixed path takes precedence over one with parameters. */
export function matchPath(document: Json, target: string): string | undefined {
  const { paths } = document as { paths: Json };
  if (Object.hasOwn(paths, target)) return target;
  let compiled = patterns.get(document);
  if (compiled === undefined) {
    compiled = Object.keys(paths)
      .filter((name) => name.includes("{"))
      .map((name) => [new RegExp(`^${name.replace(/\{\w+\}/g, "[^/]+")}$`), name]);
    patterns.set(document, compiled);
  }
  return compiled.find(([pattern]) => pattern.test(target))?.[1];
}

function lookUp(document: Json, pointer: string): Json | undefined {
  const names = pointer.split("/").slice(1);
  return names.reduce<Json | undefined>(
    (value, name) => value?.[decodeURIComponent(name).replaceAll("~1", "/")],
    document,
  );
}

/** What is wrong with a webhook; null: nothing. Both variants send the same events. */
export function findUndescribedEvent(headers: Record<string, unknown>, body: string): string | null {
  const { document, validate } = readDescription("A");
  const event = JSON.parse(body) as { event_type: string };
  const place = `/webhooks/${event.event_type}/post`;
  const described = lookUp(document, place);
  if (described === undefined) return `no webhook ${event.event_type} is described`;
  const wrongs = (described["parameters"] as Json[]).map(({ name, required }, index) =>
    headers[name] === undefined && !required ? null : validate(`${place}/parameters/${index}/schema`, headers[name]),
  );
  wrongs.push(validate(`${place}/requestBody/content/application~1json/schema`, event));
  return wrongs.find((wrong) => wrong !== null) ?? null;
}
