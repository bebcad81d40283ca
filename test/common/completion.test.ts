// What a shell offers for each place of a command line, in a real bash and, where there is one, a real zsh.
import { spawnSync } from "node:child_process";
import t from "tap";
import { defineCommand, groupCommands, type Command } from "../../src/common/command.ts";
import { formatCompletion } from "../../src/common/completion.ts";
import { loadCoupon } from "../../src/coupon.ts";

const run = async (): Promise<void> => {};
const desk = groupCommands<void, void>({
  name: "desk",
  about: "Works on pages.",
  formatVersion: () => "desk 1",
  commands: [
    defineCommand({
      name: "copy",
      about: "Copies the user's page: all of it. More about it.",
      words: { page: { about: "the page" }, size: { about: "its size", choices: ["a4", "a5"] } },
      flags: {
        fast: { type: "switch", about: "in a hurry" },
        ink: { type: "text", value: "NAME", about: "the colour", choices: ["red", "blue"] },
        reason: { type: "text", value: "WHY", about: "why" },
        count: { type: "count", value: "N", about: "how often" },
      },
      run,
    }),
    groupCommands({
      name: "shelf",
      about: "Keeps pages.",
      commands: [
        defineCommand({ name: "list", about: "Lists them.", run }),
        defineCommand({ name: "lend", about: "Lends one.", run }),
      ],
    }),
  ],
});

const flagsOfCopy = ["--fast", "--ink", "--reason", "--count", "--help"];
// The words before the cursor, the last one incomplete, and what is offered; "files": file names.
const rows: [string[], string[] | "files"][] = [
  [[""], ["copy", "shelf"]],
  [["c"], ["copy"]],
  [["-"], ["--help", "--version"]],
  [["x", ""], "files"],
  [["copy", ""], "files"],
  [
    ["copy", "page", ""],
    ["a4", "a5"],
  ],
  [
    ["copy", "shelf", ""],
    ["a4", "a5"],
  ],
  [["copy", "page", "a4", ""], "files"],
  [["copy", "page", "-"], flagsOfCopy],
  [["copy", "--", "--f"], ["--fast"]],
  [
    ["copy", "--ink", ""],
    ["red", "blue"],
  ],
  [["copy", "--ink", "b"], ["blue"]],
  [["copy", "--reason", ""], "files"],
  [["copy", "--reason", "-"], "files"],
  [
    ["copy", "--reason", "copy", "page", ""],
    ["a4", "a5"],
  ],
  [
    ["copy", "--fast", "page", "--count", "3", "a"],
    ["a4", "a5"],
  ],
  [
    ["shelf", ""],
    ["list", "lend"],
  ],
  [["shelf", "le"], ["lend"]],
  [["shelf", "list", "--"], ["--help"]],
  [["shelf", "list", "list", ""], "files"],
];

const quote = (words: string[]): string => words.map((word) => `'${word}'`).join(" ");

/** Returns what bash would show; it completes file names when nothing is offered. */
function askBash(program: Command, words: string[]): string[] | "files" {
  const { name } = program;
  const text = `${formatCompletion("bash", program)}
    COMP_WORDS=(${quote([name, ...words])}) COMP_CWORD=${words.length}
    _${name}
    (( \${#COMPREPLY[@]} )) && printf '%s\\n' "\${COMPREPLY[@]}" || complete -p ${name}`;
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", text], { encoding: "utf8" });
  if (stderr !== "") throw new Error(stderr);
  return stdout === `complete -o default -F _${name} ${name}\n` ? "files" : stdout.trimEnd().split("\n");
}

t.test("bash offers commands, choices and options, each at its place", async (t) => {
  for (const [words, offered] of rows) t.strictSame(askBash(desk, words), offered, words.join(" "));
  t.strictSame(askBash(desk, ["copy", "--ink", "="]), ["red", "blue"], "--ink=");
  t.strictSame(askBash(desk, ["copy", "--ink", "=", "r"]), ["red"], "--ink=r");
  t.strictSame(askBash(desk, ["copy", "--ink", "=", "red", "page", ""]), ["a4", "a5"], "after --ink=red");
});

const hasZsh = spawnSync("zsh", ["--version"]).status === 0;
t.test("zsh offers the same, with a sentence for each", { skip: !hasZsh && "needs zsh" }, async (t) => {
  // The two functions of zsh that show the candidates print them instead.
  const ask = (words: string[]): string[] => {
    const text = `compdef() { [[ $1 == _desk && $2 == desk ]] || exit 1 }
      _describe() { local -a found; found=("\${(@P)2}"); print -rl -- "\${(@M)found:#$current*}" }
      _files() { print files }
      ${formatCompletion("zsh", desk)}
      words=(${quote(["desk", ...words])}) CURRENT=${words.length + 1} current=${quote([words.at(-1)!])}
      _desk`;
    const { stdout, stderr } = spawnSync("zsh", ["-f", "-c", text], { encoding: "utf8" });
    if (stderr !== "") throw new Error(stderr);
    return stdout.trimEnd().split("\n");
  };
  for (const [words, offered] of rows)
    t.strictSame(
      ask(words).map((line) => line.split(":")[0]),
      offered === "files" ? ["files"] : offered,
      words.join(" "),
    );
  t.strictSame(ask(["c"]), ["copy:Copies the user's page: all of it"]);
});

t.test("coupon completes its own commands in bash", async (t) => {
  const coupon = await loadCoupon();
  const names = coupon.commands.map(({ name }) => name);
  t.strictSame(askBash(coupon, [""]), names);
  t.strictSame(askBash(coupon, ["completion", ""]), ["bash", "zsh"]);
  t.strictSame(askBash(coupon, ["statements", ""]), ["list", "verify"]);
  t.strictSame(askBash(coupon, ["webhooks", "log", "ten_a", "pty_a", "--l"]), ["--limit"]);
  t.equal(askBash(coupon, ["apply", ""]), "files");
});
