// Runs every command and query of the documents, block after block, against one service. A marker above a block,
// such as <!-- output -->, is a comment on a line of its own; `run` says what each one does.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { documents, read, readBlocks, type Block } from "./markdown.ts";
import { isWithoutPython, openShell, startDocsService, type DocsService, type Shell } from "./service.ts";

const languages = ["bash", "sql", "json", "js", "csv", "text", "yaml", "nginx", "ts", "diff", "python"];
const blocksOf = new Map(documents.map((name) => [name, readBlocks(read(name))]));

t.test("The commands and queries of the documents do what the documents say", async (t) => {
  const service = await startDocsService(t);
  // <!-- file: name -->: the block is that file.
  const files = [...blocksOf.values()].flat().filter(({ markers }) => markers["file"] !== undefined);
  for (const { markers, text } of files)
    writeFileSync(path.join(service.folder, markers["file"]!), service.setPorts(text));
  await service.applyExample(JSON.parse(files.find(({ markers }) => markers["file"] === "file.json")!.text));

  for (const [name, blocks] of blocksOf) {
    t.test(name, async (t) => {
      const scratch = path.join(service.scratch, name.replaceAll("/", "-"));
      mkdirSync(scratch);
      const shell = openShell(service, scratch);
      t.teardown(() => shell.close());
      for (const [index, block] of blocks.entries()) {
        // A failed command ends the shell.
        if (!(await run(t, { service, shell, block, next: blocks[index + 1], place: `${name}:${block.line}` }))) return;
      }
    });
  }

  t.test("The events in the documents are as the service sends them", async (t) => {
    for (const [name, blocks] of blocksOf) {
      for (const block of blocks.filter(({ text }) => text.startsWith('{\n  "event_id"'))) {
        // The commands above caused each type.
        const { event_type } = JSON.parse(block.text) as { event_type: string };
        t.equal(...compare(block, await service.readEvent(event_type)), `${name}:${block.line}`);
      }
    }
  });
});

type Test = Pick<typeof t, "ok" | "equal" | "pass" | "fail">;
type Step = { service: DocsService; shell: Shell; block: Block; next: Block | undefined; place: string };

async function run(t: Test, step: Step): Promise<boolean> {
  const { language, markers, text } = step.block;
  t.ok(languages.includes(language), `${step.place}: ${language} is a language that the test knows`);
  // <!-- not run: reason -->
  if (markers["not run"] !== undefined || (isWithoutPython && text.includes("python3 "))) return true;
  // <!-- before: a business day closes -->, of the distributor of ten_demob
  if (markers["before"] === "a business day closes") await step.service.closeDay();
  if (language === "sql") await runSql(t, step);
  return language !== "bash" || runBash(t, step);
}

async function runBash(t: Test, { service, shell, block, next, place }: Step): Promise<boolean> {
  // The node_modules of the folder are those of this checkout.
  if (/\bnpm (ci|i|install|update)\b/.test(block.text))
    return t.fail(`${place}: installing would change this checkout; mark the block "not run"`);
  const lines = await Promise.all(block.text.split("\n").map((line) => fill(service, line)));
  const { code, stdout, stderr } = await shell.run(service.setPorts(lines.join("\n")));
  t.equal(code, 0, `${place}: the commands succeed\n${stdout}${stderr}`);
  // <!-- output -->: the block prints the next one.
  if (next?.markers["output"] !== undefined) t.equal(...compare(next, stdout), `${place}: prints the block below it`);
  else t.equal(/^\{"code":"[A-Z_]+".*$/m.exec(stdout)?.[0], undefined, `${place}: no answer is an error`);
  return code === 0;
}

async function runSql(t: Test, { service, block, place }: Step): Promise<void> {
  // <!-- role: name -->
  const session = service.openSql(block.markers["role"] ?? "docs_dba");
  try {
    const statements = block.text.includes("$$") ? [block.text] : block.text.split(/;[ \t]*(?:--.*)?$/m);
    for (const statement of statements.filter((one) => one.replace(/--.*/g, "").trim() !== "")) {
      const error = await session.run(await fill(service, statement)).then(
        () => null,
        ({ message }: Error) => message,
      );
      t.equal(error, null, `${place}: ${statement.trim()}`);
    }
  } finally {
    await session.end();
  }
}

/** Replaces bat_…, cpn_…, red_… and evt_… by real IDs: those of ten_acme, if the text names it. */
async function fill(service: DocsService, text: string): Promise<string> {
  const place = /\b(bat|cpn|red|evt)_\w*…/g;
  if (!place.test(text)) return text;
  const tenant = text.includes("ten_acme") ? "ten_acme" : "ten_demoa";
  const ids = await service.makeExample(tenant, text.includes("release_lock"));
  return text.replace(place, (_, prefix: string) => ids[prefix]!);
}

/** Values that differ from run to run, by their shape. */
const varying: readonly [RegExp, string][] = [
  [/\b([a-z]{3})_[0-9a-z]{26}\b/g, "$1_ID"],
  [/\bcur_[A-Za-z0-9_-]{11}/g, "cur_ID"],
  [/http:\/\/127\.0\.0\.1:\d+\/sign-in\?link=lnk_ID\.[\w-]{43}/g, "LINK"],
  [/\bwhsec_[A-Za-z0-9+/=]+/g, "SECRET"],
  [/\bv1,[A-Za-z0-9+/=]{44}/g, "SIGNATURE"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME"],
  [/\d{4}-\d\d-\d\d/g, "DATE"],
  [/\b[0-9a-f]{64}\b/g, "HASH"],
  [/\b[0-9A-HJKMNP-TV-Z]{16}\b/g, "CODE"],
  [/-[0-9a-f]{8}\b/g, "-RUN"],
  // Messages are for people and no part of the interface.
  [/"message": "[^"]*"/g, "MESSAGE"],
];

const normalize = (text: string): string =>
  varying.reduce((changed, [pattern, name]) => changed.replace(pattern, name), text.trim().replaceAll("\r", ""));

/** What a block printed and what the document shows, both without what differs. Of JSON, the last line counts. */
function compare({ language, markers, text }: Block, stdout: string): [found: string, wanted: string] {
  if (markers["output"] === "exact") return [stdout, text];
  if (language !== "json") return [normalize(stdout), normalize(text)];
  const tidy = (json: string) => normalize(JSON.stringify(JSON.parse(json), null, 2));
  return [tidy(stdout.trim().split("\n").at(-1)!), tidy(text)];
}
