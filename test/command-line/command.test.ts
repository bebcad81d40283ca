// How a declared command reads its command line, and what its help says.
import t from "tap";
import { asksForHelp, chooseCommand, defineCommand, groupCommands } from "../../src/command-line/command.ts";
import { formatHelp } from "../../src/command-line/help.ts";

const copy = defineCommand({
  name: "copy",
  about: "Copies a page to places. More about it.",
  words: { page: { about: "the page" }, place: { about: "where to", isOptional: true, isRepeated: true } },
  flags: {
    fast: { type: "switch", about: "in a hurry" },
    reason: { type: "text", value: "WHY", about: "why", isRequired: true },
    ink: { type: "text", value: "NAME", about: "the colour", choices: ["red", "blue"] },
    count: { type: "count", value: "N", about: "how often", default: 2 },
    most: { type: "count", value: "N", about: "at most" },
  },
  settings: ["DATA_DIR"],
  examples: ["one --reason spare"],
  refuse: ({ words, flags }) => (flags.fast && words.place.length > 1 ? "fast is for one place" : null),
  run: async (input) => input,
});
const desk = groupCommands({ name: "desk", about: "Works on pages.", commands: [copy] });

async function read(...given: string[]): Promise<unknown> {
  const { command, args } = chooseCommand(desk, given);
  return command.read(args)();
}

t.test("words and flags in any order, with their defaults", async (t) => {
  const flags = { fast: false, reason: "why", ink: undefined, count: 2, most: undefined };
  t.strictSame(await read("copy", "one", "--reason", "why"), { words: { page: "one", place: [] }, flags });
  t.strictSame(await read("copy", "--most=9", "one", "--reason=-1", "a", "--ink", "red", "b", "--count", "3"), {
    words: { page: "one", place: ["a", "b"] },
    flags: { ...flags, reason: "-1", ink: "red", count: 3, most: 9 },
  });
  t.strictSame(await read("copy", "--reason=why", "--", "--fast"), { words: { page: "--fast", place: [] }, flags });
});

t.test("what is not understood is said in one sentence, and nothing runs", async (t) => {
  const why = "--reason=why";
  const rows: [string[], string][] = [
    [[], "COMMAND is missing"],
    [["toString"], 'unknown command "toString"'],
    [["--fast"], 'unknown option "--fast"'],
    [["copy"], "PAGE is missing"],
    [["copy", "one"], "--reason WHY is missing"],
    [["copy", "one", why, "--slow"], "unknown option --slow"],
    [["copy", "one", why, "--toString"], "unknown option --toString"],
    [["copy", "one", why, "-f"], "unknown option -f"],
    [["copy", "one", "--reason"], "--reason needs a value: --reason=WHY"],
    [["copy", "one", "--reason", "--fast"], "--reason needs a value: --reason=WHY"],
    [["copy", "one", why, "--fast=yes"], "--fast takes no value"],
    [["copy", "one", why, "--ink=green"], '--ink must be one of red, blue, not "green"'],
    [["copy", "one", why, "--count=0"], '--count must be a positive whole number, not "0"'],
    [["copy", "one", why, "--count=1e3"], '--count must be a positive whole number, not "1e3"'],
    [["copy", "one", why, "--fast", "a", "b"], "fast is for one place"],
  ];
  for (const [args, message] of rows) await t.rejects(read(...args), { name: "UsageError", message }, args.join(" "));
  const alone = defineCommand({ name: "alone", about: "Takes nothing.", run: async () => {} });
  t.throws(() => alone.read(["one"]), { name: "UsageError", message: 'unexpected argument "one"' });
});

t.test("--help and -h ask for help anywhere before --", async (t) => {
  for (const args of [["-h"], ["--help"], ["one", "--help"], ["--nonsense", "-h"]])
    t.ok(asksForHelp(args), args.join(" "));
  for (const args of [[], ["help"], ["--", "--help"]]) t.notOk(asksForHelp(args), args.join(" "));
});

t.test("the help of a command", async (t) => {
  t.equal(
    formatHelp("npm run desk -- copy", copy),
    `usage: npm run desk -- copy PAGE [PLACE...] [--fast] --reason WHY [--ink NAME] [--count N] [--most N]

Copies a page to places. More about it.

  PAGE          the page
  PLACE         where to
  --fast        in a hurry
  --reason WHY  why
  --ink NAME    the colour
  --count N     how often (2)
  --most N      at most
  -h, --help    prints this text

Settings, which docs/operate.md explains: DATA_DIR

Examples:
  npm run desk -- copy one --reason spare

Exit codes: 0 done, 1 failed, 2 wrong arguments`,
  );
  const long = defineCommand({
    name: "long",
    about: `${"One word after the other. ".repeat(8)}`,
    flags: { verbose: { type: "switch", about: "says what it does ".repeat(12).trim() } },
    run: async () => {},
  });
  const lines = formatHelp("npm run long", long).split("\n");
  t.ok(
    lines.every((line) => line.length <= 90),
    "no line is longer than 90 columns",
  );
  const first = lines.findIndex((line) => line.startsWith("  --verbose"));
  t.match(lines[first], /^ {2}--verbose {3}says what it does .{50,}$/);
  for (const line of lines.slice(first + 1, first + 3)) t.match(line, /^ {14}\S.+$/, "aligned with the first line");
  t.match(
    formatHelp("npm run desk", desk),
    /\nCommands, each with its own --help:\n {2}copy PAGE .* Copies a page to places\n/,
  );
});
