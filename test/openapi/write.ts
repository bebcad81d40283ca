// `npm run openapi` writes docs/openapi from the routes, with examples from a run of the service, and from docs/openapi
// the types of the TypeScript client and the Postman collections of docs/examples. Examples that differ only in what
// every run changes stay as they are.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { defineCommand } from "../../src/command-line/command.ts";
import { isProgram } from "../../src/common/program.ts";
import { runCommand } from "../../src/command-line/run-command.ts";
import { readExamples, type Examples } from "../../src/http/openapi/examples.ts";
import { renderDocument } from "../../src/http/openapi/reference.ts";
import { events } from "../../src/http/routes/event.ts";
import { routes } from "../../src/http/routes/table.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { root } from "../support/copy.ts";
import { startScratch } from "../support/temporary-server.ts";
import { renderClientTypes, type Json } from "./client-types.ts";
import { renderCollection } from "./postman.ts";
import { recordExamples } from "./record.ts";

async function record(): Promise<Examples> {
  const server = await startScratch();
  const teardowns: (() => unknown)[] = [];
  try {
    await migrate(server.address);
    const teardown = (act: () => unknown) => teardowns.unshift(act);
    return await recordExamples({ teardown } as never, { on: { address: server.address } });
  } finally {
    for (const act of teardowns) await act();
    await server.stop();
  }
}

/** Masks what differs between two runs: IDs that the service makes, times, hashes. */
export function maskRun(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value)
      .replace(/\b(bat|cpn|red|rvs|evt|req|lnk)_[0-9a-z]{26}\b/g, "$1_x")
      .replace(/\?link=lnk_x\.[\w-]{43}/g, "?link=x")
      .replace(/\bcur_[\w-]{11}/g, "cur_x")
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "time")
      .replace(/\b20\d\d-\d\d-\d\d\b/g, "date")
      .replace(/\b[0-9a-f]{64}\b/g, "sha256"),
  );
}

/** Takes from `old` each example that is equal but for IDs and times. */
function keepOld(old: Examples, made: Examples): Examples {
  const isEqual = (one: unknown, other: unknown): boolean =>
    isDeepStrictEqual(maskRun(one ?? null), maskRun(other ?? null));
  const keep = <E>(before: Record<string, E>, after: Record<string, E>): Record<string, E> =>
    Object.fromEntries(
      Object.entries(after).map(([name, one]) => [name, isEqual(before[name], one) ? before[name]! : one]),
    );
  return {
    operations: { A: keep(old.operations.A, made.operations.A), B: keep(old.operations.B, made.operations.B) },
    errors: keep(old.errors, made.errors),
    events: keep(old.events, made.events),
  };
}

/** Returns the text of each generated file by its path in the project. */
export async function renderFiles(examples: Examples): Promise<Record<string, string>> {
  const [a, b] = [renderDocument({ routes, events, examples }, "A"), renderDocument({ routes, events, examples }, "B")];
  const documents = { A: JSON.parse(a) as Json, B: JSON.parse(b) as Json };
  return {
    "docs/openapi/a.json": a,
    "docs/openapi/b.json": b,
    "docs/examples/postman-a.json": renderCollection(documents.A, "A"),
    "docs/examples/postman-b.json": renderCollection(documents.B, "B"),
    ...(await renderClientTypes(documents)),
  };
}

const command = defineCommand({
  name: "openapi",
  about:
    "Rewrites docs/openapi from the routes, with examples that a run of the service records, the types of the " +
    "TypeScript client, and the Postman collections of docs/examples.",
  flags: { "keep-examples": { type: "switch", about: "runs no service and keeps the examples" } },
  examples: ["npm run openapi", "npm run openapi -- --keep-examples"],
  async run({ flags }) {
    const old = readExamples();
    const examples = flags["keep-examples"] ? old : keepOld(old, await record());
    const files = {
      "src/http/openapi/examples.json": `${JSON.stringify(examples, null, 2)}\n`,
      ...(await renderFiles(examples)),
    };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    }
    console.log("docs/openapi, examples.json, the types of the client and the Postman collections are written");
  },
});

if (isProgram(import.meta)) await runCommand("npm run openapi", command);
