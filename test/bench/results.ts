// Results: how they are summarized and printed.

// aim: the value that the service should reach. A missed aim is printed and fails nothing.
export type Result = { name: string; value: number; unit: string; aim?: { atLeast: number } | { atMost: number } };
// The keys of the values are the titles of the columns. null: unknown, or of no meaning in this row.
export type Row = { name: string; values: Record<string, number | null> };
// tables: printed before the results, by title. details: the measured values behind them, for readers of the JSON file.
export type Report = { results: Result[]; tables?: Record<string, Row[]>; details?: Record<string, unknown> };

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// The value that this share of the values does not exceed.
export function quantile(values: Float64Array, share: number): number {
  const sorted = values.toSorted();
  return sorted[Math.min(Math.max(Math.ceil(sorted.length * share), 1), sorted.length) - 1] ?? NaN;
}

export function joined(lists: readonly Float64Array[]): Float64Array {
  return Float64Array.from(lists.flatMap((list) => [...list]));
}

export function printReport(name: string, { results, tables = {} }: Report): void {
  for (const [title, rows] of Object.entries(tables)) printRows(title, rows);
  if (results.length > 0) printResults(name, results);
}

function printRows(title: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0]!.values);
  const lines = [
    ["", ...columns],
    ...rows.map(({ name, values }) => [name, ...columns.map((column) => showCell(values[column]))]),
  ];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  console.log(`\n${title}`);
  for (const [name, ...cells] of lines) {
    const padded = cells.map((cell, column) => cell.padStart(widths[column + 1]!));
    console.log(`  ${name!.padEnd(widths[0]!)}  ${padded.join("  ")}`);
  }
}

const showCell = (value: number | null | undefined): string => (value == null ? "–" : show(value));

function printResults(title: string, results: readonly Result[]): void {
  const rows = results.map(({ name, value, unit, aim }) => [
    name,
    show(value),
    unit,
    aim === undefined ? "" : showAim(value, aim),
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  console.log(`\n${title}`);
  for (const [name, value, unit, aim] of rows) {
    console.log(
      `  ${name!.padEnd(widths[0]!)}  ${value!.padStart(widths[1]!)} ${unit!.padEnd(widths[2]!)}  ${aim}`.trimEnd(),
    );
  }
}

function showAim(value: number, aim: { atLeast: number } | { atMost: number }): string {
  const isReached = "atLeast" in aim ? value >= aim.atLeast : value <= aim.atMost;
  return `${isReached ? "reaches" : "MISSES"} ${"atLeast" in aim ? `>= ${aim.atLeast}` : `<= ${aim.atMost}`}`;
}

function show(value: number): string {
  const digits = Math.abs(value) >= 1_000 ? 0 : Math.abs(value) >= 100 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
