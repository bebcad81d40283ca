// A plain table. Cells may quote a receiver, so control characters are replaced: a terminal might execute them.
export function formatTable(rows: Record<string, unknown>[]): string {
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
  return (value instanceof Date ? value.toISOString() : String(value)).replace(/\p{C}/gu, "?");
}
