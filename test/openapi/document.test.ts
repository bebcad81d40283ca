// The API description and the types of the client: the committed files are those that the routes make, and their
// examples are real.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { Validator } from "@seriousme/openapi-schema-validator";
import { errors } from "../../src/http/errors.ts";
import { readExamples } from "../../src/http/openapi/examples.ts";
import { listRefusals } from "../../src/http/openapi/refusals.ts";
import { events } from "../../src/http/routes/event.ts";
import { routes } from "../../src/http/routes/table.ts";
import { root } from "../support/copy.ts";
import { readDescription } from "../support/described-answers.ts";
import { folder } from "./client-types.ts";
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
