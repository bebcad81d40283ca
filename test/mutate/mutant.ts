// A mutant is one small edit of one file, of the kind that a maintainer makes by mistake.
import { createHash } from "node:crypto";

export interface Edit {
  /** Offsets in the text of the file. */
  start: number;
  end: number;
  replacement: string;
  /** What kind of slip it is, for example `boundary`. */
  operator: string;
}

export interface Mutant extends Edit {
  /** Survives edits elsewhere in the file: it is made from the changed lines, not from their numbers. */
  id: string;
  file: string;
  line: number;
  /** The changed SQL function or view, as `schema.name`; empty in TypeScript. */
  object: string;
  /** The changed lines, before and after, without indentation. */
  before: string;
  after: string;
}

export const applyEdit = (text: string, { start, end, replacement }: Edit): string =>
  text.slice(0, start) + replacement + text.slice(end);

/** Gives each edit its ID and lines. Drops edits that change nothing, and all but one that make the same text. */
export function nameMutants(file: string, text: string, edits: Edit[]): Mutant[] {
  const seen = new Map<string, number>();
  const places = new Set<string>();
  const mutants: Mutant[] = [];
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    const place = `${edit.start} ${edit.end} ${edit.replacement}`;
    if (places.has(place) || text.slice(edit.start, edit.end) === edit.replacement) continue;
    places.add(place);
    const from = text.lastIndexOf("\n", edit.start - 1) + 1;
    const next = text.indexOf("\n", edit.end);
    const to = next === -1 ? text.length : next;
    const before = trimLines(text.slice(from, to));
    const after = trimLines(text.slice(from, edit.start) + edit.replacement + text.slice(edit.end, to));
    // The same line may occur several times in a file.
    const key = `${file}\0${before}\0${after}`;
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    const above = text.slice(0, edit.start);
    mutants.push({
      ...edit,
      id: digest(`${key}\0${count}`),
      file,
      line: above.split("\n").length,
      object: file.endsWith(".sql") ? ([...above.matchAll(objectHead)].at(-1)?.[1] ?? "") : "",
      before,
      after,
    });
  }
  return mutants;
}

const objectHead = /^create (?:or replace )?(?:function|view) ([\w.]+)/gm;

const trimLines = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n");

export const digest = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** In an order that follows from the seed. A mutant keeps its place among the others when files change. */
export const shuffle = (mutants: Mutant[], seed: string): Mutant[] =>
  mutants
    .map((mutant) => ({ mutant, key: digest(`${seed} ${mutant.id}`) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ mutant }) => mutant);
