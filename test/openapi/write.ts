// `npm run openapi` writes docs/openapi from the routes, with examples from a run of the service, and the types of the
// TypeScript client from docs/openapi. Examples that differ only in what every run changes stay as they are.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { defineCommand } from "../../src/common/command.ts";
import { isProgram } from "../../src/common/program.ts";
import { runCommand } from "../../src/common/run-command.ts";
import type { Examples } from "../../src/http/openapi/examples.ts";
import { renderDocument } from "../../src/http/openapi/reference.ts";
import { events } from "../../src/http/routes/event.ts";
import { routes } from "../../src/http/routes/table.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { root } from "../support/copy.ts";
import { startScratch } from "../support/scratch-server.ts";
import { renderClientTypes } from "./client-types.ts";
import { recordExamples } from "./record.ts";
import { examplesFile, maskRun, readCommitted } from "./recorder.ts";

async function record(): Promise<Examples> {
  const server = await startScratch();
  const teardowns: (() => unknown)[] = [];
  try {
    await migrate(server.address);
    return await recordExamples({ teardown: (act: () => unknown) => teardowns.unshift(act) } as never, {
      on: { address: server.address },
    });
  } finally {
    for (const act of teardowns) await act();
    await server.stop();
  }
}

/** Takes from `old` each example that is equal but for IDs and times. */
function keepOld(old: Examples, made: Examples): Examples {
  const keep = <E>(before: Record<string, E>, after: Record<string, E>): Record<string, E> =>
    Object.fromEntries(
      Object.entries(after).map(([name, one]) => [
        name,
        isDeepStrictEqual(...mask(before[name], one)) ? before[name]! : one,
      ]),
    );
  const mask = (...both: [unknown, unknown]): [unknown, unknown] => [maskRun(both[0] ?? null), maskRun(both[1])];
  return {
    operations: { A: keep(old.operations.A, made.operations.A), B: keep(old.operations.B, made.operations.B) },
    errors: keep(old.errors, made.errors),
    events: keep(old.events, made.events),
  };
}

async function writeDocuments(examples: Examples): Promise<void> {
  const texts = {
    A: renderDocument({ routes, events, examples }, "A"),
    B: renderDocument({ routes, events, examples }, "B"),
  };
  write("docs/openapi/a.json", texts.A);
  write("docs/openapi/b.json", texts.B);
  const types = await renderClientTypes({ A: JSON.parse(texts.A), B: JSON.parse(texts.B) });
  for (const [file, text] of Object.entries(types)) write(file, text);
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), text);
}

const command = defineCommand({
  name: "openapi",
  about:
    "Rewrites docs/openapi from the routes, with examples that a run of the service records, and the types of the " +
    "TypeScript client.",
  flags: { "keep-examples": { type: "switch", about: "runs no service and keeps the examples" } },
  examples: ["npm run openapi", "npm run openapi -- --keep-examples"],
  async run({ flags }) {
    const old = readCommitted();
    const examples = flags["keep-examples"] ? old : keepOld(old, await record());
    writeFileSync(examplesFile, `${JSON.stringify(examples, null, 2)}\n`);
    await writeDocuments(examples);
    console.log("docs/openapi, src/http/openapi/examples.json and the types of the client are written");
  },
});

if (isProgram(import.meta)) await runCommand("npm run openapi", command);
