// The types of the TypeScript client are those of the committed API description.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { root } from "../support/copy.ts";
import { folder, renderClientTypes, type Json } from "./client-types.ts";

const read = (name: string): string => readFileSync(path.join(root, name), "utf8");
const readDocument = (variant: string) => JSON.parse(read(`docs/openapi/${variant}.json`)) as Json;

t.test("The generated files of the client follow from docs/openapi; `npm run openapi` rewrites them", async (t) => {
  const files = await renderClientTypes({ A: readDocument("a"), B: readDocument("b") });
  for (const [name, text] of Object.entries(files)) t.equal(read(name), text, name);
  t.strictSame(
    readdirSync(path.join(root, folder)),
    Object.keys(files)
      .map((name) => path.basename(name))
      .sort(),
  );
});

t.test("The client has a method for each operation of the description, and each error code", async (t) => {
  const { operations } = await import("../../clients/typescript/src/generated/operations.ts");
  const { paths, components } = readDocument("a");
  const signed = Object.entries(paths as Record<string, Json>).filter(([at]) => at.startsWith("/v1/"));
  const names = signed.flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId as string));
  const camelCase = names.map((name) => name.replace(/_./g, ([, letter]) => letter!.toUpperCase()));
  t.strictSame(Object.keys(operations), camelCase);
  const errors = read(`${folder}/errors-and-events.ts`);
  const codes = Object.keys(components.schemas).filter((name) => /^[A-Z_]+$/.test(name));
  t.ok(codes.length > 35);
  for (const code of codes) t.match(errors, new RegExp(`^  ${code}: `, "m"));
});
