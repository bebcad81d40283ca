// Checks answers against the committed API description (docs/openapi): by variant, operation, status and error code.
// There the objects of answers are open, so that clients ignore new fields. Here they are closed, so that a new field
// must be described.
import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import demoTenants from "../../src/commands/demo-tenants.json" with { type: "json" };
import type { Variant } from "../../src/gate/gate.ts";
import type { Resource } from "../../src/http/errors.ts";
import { splitTarget } from "../../src/http/router.ts";
import { routes } from "../../src/http/routes/table.ts";
import { root } from "./copy.ts";

type Json = Record<string, any>;
/** `accessKey` is the credential of the caller. */
type Asked = { method: string; target: string; accessKey?: string | undefined };
type Answer = { status: number; headers: Record<string, unknown>; text: string; json: unknown };
type Provisioned = { tenants?: { variant: Variant; credentials?: { access_key: string }[] }[] };
type Description = { variant: Variant; document: Json; validate(pointer: string, value: unknown): string | null };

const descriptions = new Map<Variant, Description>();
const variants = new Map<string, Variant>();
const unchecked = new Map<string, number[] | "all">();

noteCredentials(demoTenants);

/** Remembers the variant of each credential of a provisioning file. */
export function noteCredentials(file: unknown): void {
  for (const { variant, credentials = [] } of (file as Provisioned | null)?.tenants ?? [])
    for (const { access_key } of credentials) variants.set(access_key, variant);
}

/** For a server with answers that the test makes up, and for benchmarks, which have no time for checks. */
export function leaveUnchecked(url: string, statuses: number[] | "all"): void {
  unchecked.set(url, statuses);
}

/** Throws if the description lacks the answer. */
export function checkDescribed(url: string, asked: Asked, answer: Answer): void {
  const left = unchecked.get(url) ?? [];
  if (left === "all" || left.includes(answer.status)) return;
  const wrong = findUndescribed(asked, answer);
  if (wrong !== null) throw new Error(`docs/openapi does not describe this answer: ${wrong}`);
}

/** What is wrong with an answer; null: nothing. `asked` is null if what arrived was not an HTTP request. */
export function findUndescribed(asked: Asked | null, answer: Answer): string | null {
  const target = asked === null ? "" : splitTarget(asked.target).path;
  // The metrics port and the unsigned pages are no operations, but their errors are those of every request.
  if (target === "/metrics" || (!target.startsWith("/v1/") && answer.status < 400)) return null;
  const variant = variants.get(asked?.accessKey ?? "");
  if (variant !== undefined) return check(readDescription(variant), asked, target, answer);
  // Either variant describes the answer to a caller that we do not know.
  return check(readDescription("A"), asked, target, answer) && check(readDescription("B"), asked, target, answer);
}

export function readDescription(variant: Variant): Description {
  const known = descriptions.get(variant) ?? loadDescription(variant);
  descriptions.set(variant, known);
  return known;
}

function loadDescription(variant: Variant): Description {
  const file = path.join(root, `docs/openapi/${variant.toLowerCase()}.json`);
  const document = close(JSON.parse(readFileSync(file, "utf8"))) as Json;
  // Each test file pays for this. test/openapi checks the description itself, and a validator runs only a few times.
  const quickly = { validateSchema: false, code: { optimize: false } };
  const ajv = new Ajv2020({ strict: false, allErrors: true, ...quickly });
  formats.default(ajv);
  ajv.addSchema(document, "api");
  const compiled = new Map<string, ValidateFunction>();
  return {
    variant,
    document,
    validate(pointer, value) {
      const fits = compiled.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` });
      compiled.set(pointer, fits);
      return fits(value) ? null : ajv.errorsText(fits.errors, { dataVar: "" });
    },
  };
}

const isClosed = { additionalProperties: false };

function close(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(close);
  const closed: Json = "properties" in value && "type" in value && value.type === "object" ? { ...isClosed } : {};
  for (const [name, field] of Object.entries(value)) closed[name] = close(field);
  return closed;
}

function check(description: Description, asked: Asked | null, target: string, answer: Answer) {
  const { variant, document, validate } = description;
  const { status, headers, text, json } = answer;
  const { name, pointer, operation } = findResponse(document, asked, target, status);
  const fail = (what: string) => `${name}, ${status}: ${what}: ${text.slice(0, 500)}`;
  const response = lookUp(document, pointer);
  const [otherCode, ...otherHeaders] = operation === undefined ? (others[status] ?? []) : [];
  if (response === undefined || (operation ?? otherCode) === undefined) return fail("no such status is described");
  const { content, headers: described = {} } = response;
  for (const [header, reference] of Object.entries(described as Json)) {
    const { required, schema } = reference.$ref === undefined ? reference : lookUp(document, reference.$ref.slice(1));
    if (required && headers[header] === undefined) return fail(`no header ${header}`);
    if (schema.const !== undefined && ![undefined, schema.const].includes(headers[header] as string))
      return fail(`header ${header}`);
  }
  if (asked?.method === "HEAD" || content === undefined) return null;
  const type = Object.keys(content).find((each) => String(headers["content-type"]).startsWith(each));
  if (type === undefined) return fail(`not ${Object.keys(content).join(" or ")}`);
  const wrong = type === "application/json" ? validate(`${pointer}/content/application~1json/schema`, json) : null;
  if (wrong !== null) return fail(wrong);
  const { code, details } = (json ?? {}) as { code?: string; details?: { resource: Resource } };
  if (otherCode !== undefined && code !== otherCode) return fail(`not ${otherCode}`);
  for (const header of otherHeaders) if (headers[header] === undefined) return fail(`no header ${header}`);
  // The schema has the resources of all operations.
  const resources = routes.find((route) => route.operation === operation)?.resources?.(variant) ?? [];
  if (code === "NOT_FOUND" && !resources.includes(details!.resource)) return fail("not a resource of the operation");
  return null;
}

// The code and the further headers of the answers to what reaches no operation. `Other` describes them together.
const others: Record<number, [code: string, ...headers: string[]]> = {
  400: ["INVALID_REQUEST"],
  404: ["ROUTE_NOT_FOUND"],
  405: ["METHOD_NOT_ALLOWED", "allow"],
  408: ["INVALID_REQUEST"],
  431: ["PAYLOAD_TOO_LARGE"],
  501: ["INVALID_REQUEST"],
  503: ["UNAVAILABLE", "retry-after"],
  505: ["INVALID_REQUEST"],
};

function findResponse(document: Json, asked: Asked | null, target: string, status: number) {
  const path = findPath(document, target);
  const method = asked?.method === "HEAD" ? "get" : asked?.method.toLowerCase();
  const operation = path === undefined ? undefined : document["paths"][path][method!];
  if (operation !== undefined) {
    const name = operation.operationId as string;
    return { name, operation: name, pointer: `${pointerTo(path!)}/${method}/responses/${status}` };
  }
  const name = asked === null ? "no request" : `${asked.method} ${target}`;
  return { name, operation: undefined, pointer: "/components/responses/Other" };
}

export const pointerTo = (path: string): string =>
  `/paths/${path.replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D")}`;

/** The path of the document that fits. A fixed path takes precedence over one with parameters. */
function findPath({ paths }: Json, target: string): string | undefined {
  if (Object.hasOwn(paths, target)) return target;
  const fits = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(target);
  return Object.keys(paths).find(fits);
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
