// A limit or window that the documents promise: its number in the source, and the test that shows it.

// A number in the source, between two texts. It occurs once.
export type Place = { file: string; before: string; number: string; after: string };

export type Limit = {
  name: string;
  value: string;
  // Where it is set. Empty: no single number sets it, the test finds it.
  places: Place[];
  // pins: one step inside and one step outside. bounds: it notices a value of another size.
  test: { file: string; title: string; how: "pins" | "bounds" };
  // What the documents say, with the number. Each is a part of a sentence.
  said: string[];
};

export const at = (file: string, before: string, number: string, after: string): Place => ({
  file,
  before,
  number,
  after,
});
export const pins = (file: string, title: string): Limit["test"] => ({ file, title, how: "pins" });
export const bounds = (file: string, title: string): Limit["test"] => ({ file, title, how: "bounds" });

// The table of docs/limits.md.
export function renderTable(limits: Limit[]): string {
  const rows = limits.map(({ name, value, places, test }) => {
    const files = [...new Set(places.map(({ file }) => `\`${file}\``))].join(", ") || "several places";
    return `| ${name} | ${value} | ${files} | ${test.how} it: \`${test.file}\` |`;
  });
  return ["| limit | value | set in | test |", "| --- | --- | --- | --- |", ...rows].join("\n");
}
