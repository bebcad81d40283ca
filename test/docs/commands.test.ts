// Runs every command and query in the documents. README.md in this folder says how.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { documents, read, readBlocks, type Block } from "./markdown.ts";
import { notRun } from "./not-run.ts";
import { compare, findError } from "./output.ts";
import type { Example } from "./examples.ts";
import { environmentOf, setPorts, startDocsService, type DocsService } from "./service.ts";
import { openShell, type Shell } from "./shell.ts";

const languages = ["bash", "sql", "json", "js", "csv", "text", "mermaid", "yaml", "nginx", "ts", "diff", "python"];
const isWithoutPython = spawnSync("python3", ["--version"]).error !== undefined;
const blocksOf = new Map(documents.map((name) => [name, readBlocks(read(name))]));

t.test("each block names a language that the test knows, so that none is left out by mistake", async (t) => {
  for (const [name, blocks] of blocksOf)
    for (const { language, line } of blocks) t.ok(languages.includes(language), `${name}:${line}: ${language}`);
});

t.test("the blocks that do not run are those of not-run.ts", async (t) => {
  const found = Object.fromEntries(
    [...blocksOf]
      .map(([name, blocks]) => [name, blocks.flatMap(({ markers }) => markers["not run"] ?? [])] as const)
      .filter(([, reasons]) => reasons.length > 0),
  );
  t.strictSame(found, notRun);
});

t.test("the commands and queries of the documents", async (t) => {
  const service = await startDocsService();
  t.teardown(() => service.stop());
  const files = [...blocksOf.values()].flat().filter(({ markers }) => markers["file"] !== undefined);
  for (const { markers, text } of files)
    writeFileSync(path.join(service.folder, markers["file"]!), setPorts(service, text));
  const example = files.find(({ markers }) => markers["file"] === "file.json");
  if (example !== undefined) await service.applyExample(JSON.parse(example.text));

  for (const [name, blocks] of blocksOf) {
    t.test(name, async (t) => {
      const scratch = path.join(service.scratch, name.replaceAll("/", "-"));
      mkdirSync(scratch);
      const shell = openShell(service.folder, environmentOf(service), scratch);
      t.teardown(() => shell.close());
      for (const [index, block] of blocks.entries()) {
        if (block.markers["not run"] !== undefined) continue;
        if (isWithoutPython && block.text.includes("python3 ")) continue;
        const next = blocks[index + 1];
        const shown = next?.markers["output"] === undefined ? null : next;
        const place = `${name}:${block.line}`;
        if (block.markers["before"] === "a business day closes") await service.closeDay();
        if (block.language === "bash" && !(await runBash(t, shell, service, { block, shown, place }))) return;
        if (block.language === "sql") await runSql(t, service, block, place);
      }
    });
  }
  t.test("the events in the documents are as the service sends them", (t) => checkEvents(t, service));
});

// The events are those that the commands caused, so each type in a document has happened.
async function checkEvents(t: Test, service: DocsService): Promise<void> {
  const shown = [...blocksOf].flatMap(([name, blocks]) =>
    blocks
      .filter(({ language, text }) => language === "json" && text.startsWith('{\n  "event_id"'))
      .map((block) => ({ place: `${name}:${block.line}`, block })),
  );
  for (const { place, block } of shown) {
    const body = await service.readEvent((JSON.parse(block.text) as { event_type: string }).event_type);
    const { found, wanted } = compare(block, body);
    t.equal(found, wanted, `${place}: an event as the service sends it`);
  }
}

type Test = Pick<typeof t, "ok" | "equal" | "pass" | "fail">;
type Step = { block: Block; shown: Block | null; place: string };

async function runBash(t: Test, shell: Shell, service: DocsService, { block, shown, place }: Step): Promise<boolean> {
  // The node_modules of the folder are those of this checkout.
  if (/\bnpm (ci|i|install|update)\b/.test(block.text)) {
    t.fail(`${place}: installing would change this checkout; mark the block "not run"`);
    return false;
  }
  const lines = await Promise.all(block.text.split("\n").map((line) => fill(service, line)));
  const { code, stdout, stderr } = await shell.run(setPorts(service, lines.join("\n")));
  t.equal(code, 0, `${place}: the commands succeed\n${stdout}${stderr}`);
  if (shown !== null) {
    const { found, wanted } = compare(shown, stdout);
    t.equal(found, wanted, `${place}: prints the block below it`);
  } else t.equal(findError(stdout), null, `${place}: no answer is an error`);
  return code === 0;
}

async function runSql(t: Test, service: DocsService, block: Block, place: string): Promise<void> {
  const session = service.openSql(block.markers["role"] ?? "docs_dba");
  try {
    const statements = block.text.includes("$$") ? [block.text] : block.text.split(/;[ \t]*(?:--.*)?$/m);
    for (const statement of statements) {
      if (statement.replace(/--.*/g, "").trim() === "") continue;
      try {
        await session.run(await fill(service, statement));
        t.pass(`${place}: ${statement.trim()}`);
      } catch (error) {
        t.fail(`${place}: ${statement.trim()}: ${(error as Error).message}`);
      }
    }
  } finally {
    await session.end();
  }
}

// Real ids in the places of bat_…, cpn_…, red_… and evt_….
async function fill(service: DocsService, text: string): Promise<string> {
  const place = /\b(bat|cpn|red|evt)_\w*…/g;
  if (!place.test(text)) return text;
  const tenant = text.includes("ten_acme") ? "ten_acme" : "ten_demoa";
  const made: Example = await service.makeExample(tenant, text.includes("release_lock"));
  const ids: Record<string, string> = { bat: made.batch, cpn: made.coupon, red: made.redemption, evt: made.event };
  return text.replace(place, (_, prefix: string) => ids[prefix]!);
}
