// The API description and the types of the client: the committed files are those that the routes make, and their
// examples are real.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { runInNewContext } from "node:vm";
import t from "tap";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { errors } from "../../src/http/errors.ts";
import { readExamples } from "../../src/http/openapi/examples.ts";
import { listRefusals } from "../../src/http/openapi/refusals.ts";
import { events } from "../../src/http/routes/event.ts";
import { routes } from "../../src/http/routes/table.ts";
import { root } from "../support/copy.ts";
import { CryptoJS } from "../support/crypto-js.ts";
import { pointerTo, readDescription } from "../support/described-answers.ts";
import { folder } from "./client-types.ts";
import signing from "../vectors/signing.json" with { type: "json" };
import { recordExamples } from "./record.ts";
import { maskRun, renderFiles } from "./write.ts";

const variants = ["A", "B"] as const;
const examples = readExamples();

t.test("The committed files are those that the routes make; `npm run openapi` rewrites them", async (t) => {
  const files = await renderFiles(examples);
  for (const [name, text] of Object.entries(files)) t.equal(readFileSync(path.join(root, name), "utf8"), text, name);
  const types = readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`);
  t.strictSame(
    types.filter((name) => files[name] === undefined),
    [],
  );
});

t.test("The documents are valid OpenAPI 3.1", async (t) => {
  for (const name of ["a", "b"]) {
    const text = readFileSync(path.join(root, `docs/openapi/${name}.json`), "utf8");
    const { valid, errors: wrong } = await new Validator().validate(JSON.parse(text));
    t.ok(valid, JSON.stringify(wrong));
  }
});

t.test("The documents break no rule that Redocly recommends; each operation has a description", async (t) => {
  // The last two rules are those that Spectral recommends beside.
  const rules = { "operation-description": "error", "info-contact": "error" } as const;
  const config = await createConfig({ extends: ["recommended"], rules });
  for (const variant of variants) {
    const source = readFileSync(path.join(root, `docs/openapi/${variant.toLowerCase()}.json`), "utf8");
    const found = await lintFromString({ source, absoluteRef: `${variant}.json`, config });
    t.strictSame(
      found.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer} ${message}`),
      [],
      variant,
    );
  }
});

// Generators make names of types, methods and fields in the case of their language.
const spell = (name: string): string => name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();

t.test("What generators make of the documents: distinct names, signing once, named bodies, open errors", async (t) => {
  for (const variant of variants) {
    const { document } = readDescription(variant);
    const { schemas, securitySchemes } = document["components"];
    const described = Object.entries(document["paths"]).flatMap(([at, item]) =>
      Object.entries(item as Record<string, any>).map(([method, operation]) => ({ at, method, operation })),
    );
    t.strictSame(
      described.map(({ at, method }) => `${method.toUpperCase()} ${at}`).sort(),
      routes.map(({ method, path: at }) => `${method} ${at}`).sort(),
      "only the operations",
    );
    const hooks = Object.values(document["webhooks"]).map((item: any) => item.post.operationId as string);
    const groups: Record<string, string[]> = {
      schemas: Object.keys(schemas),
      operations: [...described.map(({ operation }) => operation.operationId as string), ...hooks],
      tags: document["tags"].map(({ name }: { name: string }) => name),
    };
    for (const [name, schema] of Object.entries<any>(schemas)) groups[name] = Object.keys(schema.properties ?? {});
    for (const [name, group] of Object.entries(groups)) t.equal(new Set(group.map(spell)).size, group.length, name);

    for (const { at, method, operation } of described) {
      const place = `${variant} ${method} ${at}`;
      const parameters: any[] = operation.parameters ?? [];
      t.notOk(JSON.stringify(parameters).includes("x-svc-"), `${place}: signing is a matter of securitySchemes`);
      const bodies = [operation.requestBody, operation.responses["200"]].map((one) => one?.content);
      for (const content of bodies.filter((one) => one?.["application/json"] !== undefined))
        t.match(content["application/json"].schema, { $ref: /^#\/components\/schemas\/\w+$/ }, place);
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        if (/^[23]/.test(status)) continue;
        const { content } = response.$ref === undefined ? response : document["components"].responses.Other;
        const { oneOf, discriminator } = content["application/json"].schema;
        const mapped = Object.entries<string>(discriminator.mapping).map(([code, target]) => {
          const name = target.split("/").at(-1)!;
          t.equal(schemas[name].properties.code.const ?? name, code, place);
          return { $ref: target };
        });
        t.strictSame(oneOf, mapped, `${place} ${status}`);
        t.strictSame(mapped.at(-1), { $ref: "#/components/schemas/UnknownError" }, `${place} ${status}`);
      }
    }
    t.strictSame(document["security"], [Object.fromEntries(Object.keys(securitySchemes).map((name) => [name, []]))]);
  }
});

t.test("An error code that is newer than the document fits it, but a known one only in its form", async (t) => {
  const { validate } = readDescription("A");
  const place = `${pointerTo("/v1/coupons/lock")}/post/responses/409/content/application~1json/schema`;
  const error = { code: "COUPON_ON_FIRE", message: "-", request_id: "r-1", details: { since: "noon" } };
  t.equal(validate(place, error), null);
  for (const code of ["COUPON_LOCKED", "BATCH_NOT_COMPLETED"]) t.ok(validate(place, { ...error, code }), code);
});

t.test("The Postman collections have every operation, and their script signs as the vectors do", async (t) => {
  for (const [letter, { document }] of [["a", readDescription("A")] as const, ["b", readDescription("B")] as const]) {
    const collection = JSON.parse(readFileSync(path.join(root, `docs/examples/postman-${letter}.json`), "utf8"));
    const tags = new Set(document["tags"].map(({ name }: { name: string }) => name));
    const items = collection.item.filter(({ name }: any) => tags.has(name)).flatMap(({ item }: any) => item as any[]);
    t.strictSame(
      items.map(({ name, request }: any) => `${name} ${request.method} ${request.url.path.length}`).sort(),
      routes.map(({ operation, method, path: at }) => `${operation} ${method} ${at.split("/").length - 1}`).sort(),
    );
    const known = new Set<string>(["request_id", ...collection.variable.map(({ key }: any) => key)]);
    for (const [, name = ""] of JSON.stringify(collection.item).matchAll(/\{\{(\w+)\}\}/g)) t.ok(known.has(name), name);
    t.notOk(/"key":"\w*secret","value":"."/.test(JSON.stringify(collection)), "no secret");

    const { script } = collection.event.find(({ listen }: any) => listen === "prerequest");
    const variables = { set: () => {}, get: () => undefined, replaceIn: () => "" };
    const pm = { variables, request: { headers: { get: () => "{{access_key}}" } } };
    const context = { require: () => CryptoJS, pm, sign: (_: object, __: string) => "" };
    // test/docs/coupon-life.test.ts runs the whole script; here it ends once `sign` is defined.
    t.throws(() => runInNewContext(script.exec.join("\n"), context), /Set the variable secret of the collection/);
    const { secret, vectors } = signing;
    t.ok(vectors.length > 4);
    for (const { signature, ...request } of vectors) t.equal(context.sign(request, secret), signature, request.target);
  }
});

t.test("The examples are what a run of the service answers, but for IDs and times", async (t) => {
  t.strictSame(maskRun(await recordExamples(t)), maskRun(examples));
});

t.test("Every operation, every error code and every event has an example", async (t) => {
  const operations = routes.filter(({ download }) => !download).map(({ operation }) => operation);
  for (const variant of variants) t.strictSame(Object.keys(examples.operations[variant]).sort(), operations.toSorted());
  t.strictSame(Object.keys(examples.events).sort(), events.map(({ type }) => type).sort());
  const shown = Object.keys(examples.errors).map((name) => name.split(".")[0]!);
  t.strictSame([...new Set(shown)].sort(), Object.keys(errors).sort());
});

t.test("Every error code belongs to an operation, or to a request that reaches none", async (t) => {
  const found = routes.flatMap((route) => variants.flatMap((variant) => listRefusals(route, variant)));
  const reached = new Set<string>([...found, "ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"]);
  t.strictSame([...reached].sort(), Object.keys(errors).sort());
});

t.test("Every example fits the schema beside it", async (t) => {
  for (const variant of variants) {
    const { document, validate } = readDescription(variant);
    let count = 0;
    const visit = (value: unknown, place: string): void => {
      if (typeof value !== "object" || value === null) return;
      const { schema, examples: shown = {} } = value as { schema?: unknown; examples?: Record<string, any> };
      for (const [name, example] of schema === undefined ? [] : Object.entries(shown)) {
        const { value } = example.$ref === undefined ? example : document["components"].examples[name];
        t.equal(validate(`${place}/schema`, value), null, `${variant} ${place} ${name}`);
        count += 1;
      }
      for (const [name, field] of Object.entries(value))
        visit(field, `${place}/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`);
    };
    for (const part of ["paths", "webhooks"]) visit(document[part], `/${part}`);
    t.ok(count > 150, `${count} examples`);
  }
});
