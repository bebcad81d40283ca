// The API description: the committed documents are those that the routes make, and their examples are real.
import { readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { Validator } from "@seriousme/openapi-schema-validator";
import { errors } from "../../src/http/errors.ts";
import { listRefusals } from "../../src/http/openapi/refusals.ts";
import { renderDocument } from "../../src/http/openapi/reference.ts";
import { events } from "../../src/http/routes/event.ts";
import { routes } from "../../src/http/routes/table.ts";
import { root } from "../support/copy.ts";
import { readDescription } from "../support/described-answers.ts";
import { recordExamples } from "./record.ts";
import { maskRun, readCommitted } from "./recorder.ts";

const variants = ["A", "B"] as const;
const read = (variant: string) => readFileSync(path.join(root, `docs/openapi/${variant.toLowerCase()}.json`), "utf8");

t.test("The committed documents are those that the routes make; `npm run openapi` rewrites them", (t) => {
  const examples = readCommitted();
  for (const variant of variants)
    t.equal(renderDocument({ routes, events, examples }, variant), read(variant), `docs/openapi of Variant ${variant}`);
  t.end();
});

t.test("The documents are valid OpenAPI 3.1", async (t) => {
  for (const variant of variants) {
    const { valid, errors: wrong } = await new Validator().validate(JSON.parse(read(variant)));
    t.ok(valid, JSON.stringify(wrong));
  }
});

t.test("The examples are what a run of the service answers, but for IDs and times", async (t) => {
  t.strictSame(maskRun(await recordExamples(t)), maskRun(readCommitted()));
});

t.test("Every operation, every error code and every event has an example", (t) => {
  const examples = readCommitted();
  for (const variant of variants) {
    const shown = routes.filter(({ isDownload }) => !isDownload).map(({ operation }) => operation);
    t.strictSame(Object.keys(examples.operations[variant]).sort(), shown.sort());
  }
  t.strictSame(Object.keys(examples.events).sort(), events.map(({ type }) => type).sort());
  const shown = Object.keys(examples.errors).map((name) => name.split(".")[0]!);
  t.strictSame([...new Set(shown)].sort(), Object.keys(errors).sort());
  t.end();
});

t.test("Every error code belongs to an operation, or to a request that reaches none", (t) => {
  const found = routes.flatMap((route) => variants.flatMap((variant) => listRefusals(route, variant)));
  const reached = new Set<string>([...found, "ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"]);
  t.strictSame([...reached].sort(), Object.keys(errors).sort());
  t.end();
});

t.test("Every example fits the schema beside it", (t) => {
  for (const variant of variants) {
    const { document, validate } = readDescription(variant);
    let count = 0;
    const visit = (value: unknown, place: string): void => {
      if (typeof value !== "object" || value === null) return;
      const { schema, examples = {} } = value as { schema?: unknown; examples?: Record<string, any> };
      if (schema !== undefined)
        for (const [name, example] of Object.entries(examples)) {
          const shown = example.$ref === undefined ? example : document["components"].examples[name];
          t.equal(validate(`${place}/schema`, shown.value), null, `${variant} ${place} ${name}`);
          count += 1;
        }
      for (const [name, field] of Object.entries(value)) {
        const escaped = name.replaceAll("~", "~0").replaceAll("/", "~1");
        visit(field, `${place}/${encodeURIComponent(escaped)}`);
      }
    };
    for (const part of ["paths", "webhooks"]) visit(document[part], `/${part}`);
    t.ok(count > 150, `${count} examples`);
  }
  t.end();
});
