// Compares what a document shows with what a block printed.
import type { Block } from "./markdown.ts";

// Values that differ from run to run, by their shape.
const varying: readonly [RegExp, string][] = [
  [/\b([a-z]{3})_[0-9a-z]{26}\b/g, "$1_ID"],
  [/\bcur_[A-Za-z0-9_-]{11}/g, "cur_ID"],
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

function normalize(text: string): string {
  return varying.reduce((changed, [pattern, name]) => changed.replace(pattern, name), text.trim().replaceAll("\r", ""));
}

// What the block printed, as the document should show it, and what it shows.
export function compare(shown: Block, stdout: string): { found: string; wanted: string } {
  if (shown.markers["output"] === "exact") return { found: stdout, wanted: shown.text };
  if (shown.language !== "json") return { found: normalize(stdout), wanted: normalize(shown.text) };
  const tidy = (text: string) => normalize(JSON.stringify(JSON.parse(text), null, 2));
  return { found: tidy(stdout.trim().split("\n").at(-1)!), wanted: tidy(shown.text) };
}

export function findError(stdout: string): string | null {
  return /^\{"code":"[A-Z_]+".*$/m.exec(stdout)?.[0] ?? null;
}
