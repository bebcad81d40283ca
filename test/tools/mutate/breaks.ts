// Reads breaks.txt: breaks that the operators do not make.
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Edit } from "../../support/copy.ts";
import { findObject, readText } from "./mutant.ts";
import type { Place } from "./select.ts";

export interface Break {
  name: string;
  /** The test file that must notice; absent: one of those that run the code. */
  test: string | undefined;
  edits: Edit[];
}

/** The breaks whose name contains one of the words. */
export function readBreaks(words: string[] = [""]): Break[] {
  const lines = readFileSync(path.join(import.meta.dirname, "breaks.txt"), "utf8").split("\n");
  const breaks: Break[] = [];
  let [test, file, before]: (string | undefined)[] = [];
  for (const line of lines.slice(lines.indexOf(""))) {
    const [, sign, text = ""] = /^(##|==|in|[-+]) ?(.*)$/.exec(line) ?? [];
    const edits = breaks.at(-1)?.edits ?? [];
    const last = edits.at(-1);
    if (sign === "##") test = text;
    else if (sign === "==") breaks.push({ name: text.split(": ")[1]!, test, edits: [] });
    else if (sign === "in") file = text;
    else if (sign === "-" && before === "-") last!.find += `\n${text}`;
    else if (sign === "-") edits.push({ file: file!, find: text, replace: "" });
    else if (sign === "+") last!.replace += before === "+" ? `\n${text}` : text;
    else if (line !== "") throw new Error(`breaks.txt does not explain: ${line}`);
    if (sign === "==") file = text.split(": ")[0];
    before = sign;
  }
  const chosen = breaks.filter(({ name }) => words.some((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error("no break has a name with these words");
  return chosen;
}

export function placeOf({ file, find }: Edit): Place {
  const text = readText(file);
  const start = text.indexOf(find);
  return { file, start, object: file.endsWith(".sql") ? findObject(text.slice(0, start + find.length)) : "" };
}
