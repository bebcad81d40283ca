// A number in the documents is a promise: docs/limits.md names where it is set and the test that shows it.
import { existsSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { root } from "../support/copy.ts";
import { renderTable } from "./limits/limit.ts";
import { otherNumbers } from "./limits/others.ts";
import { limits } from "./limits/table.ts";
import { read } from "./markdown.ts";

const names = ["integrate", "webhooks", "statements", "operate", "security", "restore", "database", "docker"];

const blank = (text: string) => text.replace(/[^\n]/g, " ");

// A section of measured times: they promise nothing.
const measured = /^### Fast questions$[^]*?(?=^#)/gm;

// The prose of a document in one line. Fenced blocks are examples; three tables are compared with the source elsewhere.
function readProse(name: string): string {
  return read(`docs/${name}.md`)
    .replace(/^( *)```[^]*?^ *```$/gm, blank)
    .replace(/<!-- (states|settings|metrics):begin[^]*?:end -->/g, blank)
    .replace(measured, blank)
    .replace(/\s+/g, " ");
}

const known = [...limits.flatMap(({ said }) => said), ...Object.values(otherNumbers).flat()];

t.test("everything that the list knows is still in the documents", async (t) => {
  const all = names.map(readProse).join(" ");
  t.strictSame(
    known.filter((phrase) => !all.includes(phrase)),
    [],
  );
});

t.test("the number of each limit is set where the list says, and its test exists", async (t) => {
  for (const { name, places, test } of limits) {
    for (const { file, before, number, after } of places)
      t.equal(read(file).split(before + number + after).length - 1, 1, `${name}: ${before}${number}${after}`);
    t.ok(existsSync(path.join(root, test.file)), test.file);
    t.ok(read(test.file).includes(test.title), `${test.file}: ${test.title}`);
  }
});

t.test("docs/limits.md has the table of the list", async (t) => {
  const [, table = ""] = /<!-- limits:begin -->\n([^]*)\n<!-- limits:end -->/.exec(read("docs/limits.md")) ?? [];
  t.equal(table, renderTable(limits), "node test/docs/limits/table.ts prints it");
});
