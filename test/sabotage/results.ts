// Reads the results of a test run from its TAP output.

export type Results = {
  // Each test file that completed, and whether it passed.
  files: Map<string, boolean>;
  // The failed tests, at any depth.
  tests: string[];
  // The failed assertions. An exception is not an assertion, except that our check of the invariants throws one.
  assertions: string[];
};

export function readResults(tap: string): Results {
  const files = new Map<string, boolean>();
  const tests = new Set<string>();
  const assertions = new Set<string>();
  const lines = tap.split("\n");
  for (const [index, line] of lines.entries()) {
    const match = /^( *)(not )?ok \d+ - (.*)$/.exec(line);
    if (match === null) continue;
    const [, indent = "", not, text = ""] = match;
    const name = text.replace(/ # time=.*$/, "");
    if (indent === "") files.set(name, not === undefined);
    else if (not !== undefined && / # time=/.test(text)) tests.add(name);
    else if (not !== undefined && !isException(lines, index, indent)) assertions.add(name);
  }
  return { files, tests: [...tests], assertions: [...assertions] };
}

// Whether the failure is an exception. tap says so in the lines below it.
function isException(lines: string[], index: number, indent: string): boolean {
  if (lines[index]!.includes("broken invariants:")) return false;
  for (const line of lines.slice(index + 1)) {
    if (line.startsWith(`${indent}  `) === false || line.trim() === "...") return false;
    if (/^ *tapCaught: /.test(line)) return true;
  }
  return false;
}
