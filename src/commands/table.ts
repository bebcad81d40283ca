// Rows as a plain table or as JSON. They may quote a receiver, and a terminal might execute control characters: the
// table replaces them, and JSON escapes them.
import { replaceUnprintable } from "../formats/field-types.ts";

type Row = Record<string, unknown>;

export const json = { type: "switch", about: "prints one JSON document" } as const;

export const formatRows = (rows: Row[], flags: { json: boolean }): string =>
  flags.json ? formatJson(rows) : formatTable(rows);

export function formatJson(value: unknown): string {
  const escape = (text: string) =>
    text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return JSON.stringify(value, null, 2).replace(/[^\P{C}\n]/gu, escape);
}

function formatTable(rows: Row[]): string {
  if (rows.length === 0) return "none";
  const cells = [Object.keys(rows[0]!), ...rows.map((row) => Object.values(row).map(show))];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function show(value: unknown): string {
  if (value === null) return "-";
  return replaceUnprintable(value instanceof Date ? value.toISOString() : String(value), "?");
}
