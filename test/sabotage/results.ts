// Reads what failed in a test file from its TAP output.

export interface Failures {
  /** The titles of the failed tests, at any depth. */
  tests: string[];
  /**
   * The failed assertions. An exception is none, unless a check throws it: a wait, a property, the invariants, or the
   * check of answers.
   */
  assertions: string[];
}

export function readFailures(tap: string): Failures {
  const tests = new Set<string>();
  const assertions = new Set<string>();
  const lines = tap.split("\n");
  for (const [index, line] of lines.entries()) {
    const match = /^( *)not ok \d+ - (.*)$/.exec(line);
    if (match === null) continue;
    const [, indent = "", text = ""] = match;
    // tap prints a time for a test, but not for an assertion.
    if (/ # time=/.test(text)) tests.add(text.replace(/ # time=.*$/, ""));
    else if (!isException(lines, index, indent)) assertions.add(text);
  }
  return { tests: [...tests], assertions: [...assertions] };
}

const ownChecks = / - (waited [\d.]+ s for|Property failed)|broken invariants:|not in docs\/openapi/;

/** Whether the failure is an exception. tap says so in the lines below it. */
function isException(lines: string[], index: number, indent: string): boolean {
  if (ownChecks.test(lines[index]!)) return false;
  for (const line of lines.slice(index + 1)) {
    if (line.startsWith(`${indent}  `) === false || line.trim() === "...") return false;
    if (/^ *tapCaught: /.test(line)) return true;
  }
  return false;
}
