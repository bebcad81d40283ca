// Figures: how they are taken together, and how they are shown.

// aim: what the service is to reach, told beside the figure; missing it fails nothing.
export type Figure = { name: string; value: number; unit: string; aim?: { atLeast: number } | { atMost: number } };
// details: whatever the figures were made of, for whoever reads the JSON.
export type Report = { figures: Figure[]; details?: Record<string, unknown> };

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// The value that this share of them does not exceed.
export function quantile(values: Float64Array, share: number): number {
  const sorted = values.toSorted();
  return sorted[Math.min(Math.max(Math.ceil(sorted.length * share), 1), sorted.length) - 1] ?? NaN;
}

export function joined(lists: readonly Float64Array[]): Float64Array {
  return Float64Array.from(lists.flatMap((list) => [...list]));
}

export function printTable(title: string, figures: readonly Figure[]): void {
  const rows = figures.map(({ name, value, unit, aim }) => [
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
