// bin/coupon and the command lines of its commands: where it finds the checkout and Node, what is not understood, and
// what the help says. Most of that is tested without a process.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { chooseCommand, UsageError, type Command } from "../../src/command-line/command.ts";
import { formatHelp } from "../../src/command-line/help.ts";
import { loadCoupon } from "../../src/coupon.ts";
import { listMigrations } from "../../src/migration/db-files.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { resultOf, runProgram, type Result } from "../support/program.ts";

const { version, scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  version: string;
  scripts: Record<string, string>;
};
const coupon = await loadCoupon();

function run(file: string, args: string[], options: { cwd?: string; PATH?: string } = {}): Promise<Result> {
  const { cwd = root, PATH = process.env["PATH"] } = options;
  return resultOf(spawn(file, args, { cwd, env: { PATH } }));
}

/** The commands that run, with the words that choose them. */
function listLeaves(command: Command, names: string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[names.join(" "), command]];
  return command.commands.flatMap((each) => listLeaves(each, [...names, each.name]));
}

t.test("coupon --version prints the version and the newest migration", async (t) => {
  const printed = `coupon ${version}, migration ${listMigrations().at(-1)}\n`;
  t.strictSame(await run("bin/coupon", ["--version"]), { code: 0, stdout: printed, stderr: "" });
  t.throws(() => coupon.read(["--version", "--nonsense"]), new UsageError('unexpected argument "--nonsense"'));
});

t.test("coupon works through links such as npm makes, from any folder, also with blanks in names", async (t) => {
  const folder = path.join(t.testdir(), "a folder");
  mkdirSync(path.join(folder, "bin"), { recursive: true });
  mkdirSync(path.join(folder, "lib/node_modules"), { recursive: true });
  // The same as `npm install -g FOLDER`: a link to the folder, and a relative link to the program.
  symlinkSync(root, path.join(folder, "lib/node_modules/coupon-service"));
  symlinkSync("../lib/node_modules/coupon-service/bin/coupon", path.join(folder, "bin/coupon"));
  // And a link to the folder of programs.
  symlinkSync(path.join(root, "bin"), path.join(folder, "programs"));
  for (const file of [path.join(folder, "bin/coupon"), "./programs/coupon"])
    fits(t, await run(file, ["--version"], { cwd: folder }), { code: 0, stdout: /^coupon / }, file);
  const PATH = `${folder}/bin:${process.env["PATH"]}`;
  fits(t, await run("coupon", ["codes", "a", "b"], { cwd: "/", PATH }), {
    code: 2,
    stdout: "",
    stderr: /^unexpected argument "b"\nusage: coupon codes BATCH/,
  });
});

t.test("coupon says when its packages or Node are missing, and takes a new enough Node from PATH", async (t) => {
  const folder = t.testdir();
  cpSync(path.join(root, "bin"), path.join(folder, "bin"), { recursive: true });
  const tools = path.join(folder, "tools");
  mkdirSync(tools);
  for (const tool of ["dirname", "readlink"]) symlinkSync(`/usr/bin/${tool}`, path.join(tools, tool));
  const runHere = () => run(path.join(folder, "bin/coupon"), ["codes", "a b"], { PATH: tools });
  const putNode = (answer: string) => {
    const script = `#!/bin/sh\n[ "$1" = --version ] && echo ${answer} || printf '%s\\n' "$@"\n`;
    writeFileSync(path.join(tools, "node"), script, { mode: 0o755 });
  };
  const noPackages = `coupon needs its packages: run npm ci in ${folder}\n`;
  t.strictSame(await runHere(), { code: 1, stdout: "", stderr: noPackages });
  mkdirSync(path.join(folder, "node_modules"));
  const needsNode = /^coupon needs Node 24 or newer, in \S+\/node_modules\/\.bin or in PATH/;
  fits(t, await runHere(), { code: 1, stdout: "", stderr: needsNode }, "no node at all");
  for (const old of ["v20.20.2", "v23.11.0"]) {
    putNode(old);
    fits(t, await runHere(), { code: 1, stdout: "", stderr: needsNode }, old);
  }
  for (const current of ["v24.0.0", "v100.1.0"]) {
    putNode(current);
    fits(t, await runHere(), { code: 0, stdout: /\/src\/coupon\.ts\ncodes\na b\n$/, stderr: "" }, current);
  }
});

t.test("each command has an npm script of its name, and its help and errors say how it was called", async (t) => {
  const names = Object.keys(scripts).filter((name) => scripts[name] === `exec bin/coupon ${name}`);
  t.strictSame(
    // Scripts of these names check the code and start cells to try; a router has none.
    coupon.commands.map(({ name }) => name).filter((name) => !["check", "cells", "router"].includes(name)),
    names,
  );
  const dataDir = path.join(t.testdir(), "data");
  const runScript = (name: string, args: string[], npmScript = name) =>
    runProgram(name, { args, env: { DATA_DIR: dataDir, npm_lifecycle_event: npmScript } });
  for (const [name, call] of [
    ["start", "npm start"],
    ["codes", "npm run -s codes"],
  ] as const) {
    const stderr = new RegExp(`^unknown option --nonsense\nusage: ${call}[^]*\nhelp:  ${call} -- --help\n$`);
    fits(t, await runScript(name, ["--nonsense"]), { code: 2, stdout: "", stderr });
  }
  t.notOk(existsSync(dataDir), "nothing was started");
  const replay = ["replay", "-h"];
  const help = (call: string) => ({ code: 0, stdout: new RegExp(`^usage: ${call} replay TENANT EVENT`) });
  fits(t, await runScript("webhooks", replay), help("npm run -s webhooks --"));
  // npm passes the name of its script on to whatever that script starts.
  fits(t, await runScript("webhooks", replay, "test"), help("coupon webhooks"));
});

t.test("each command refuses unknown options and surplus words before it runs", async (t) => {
  const fives = ["1", "2", "3", "4", "5"];
  for (const [name, command] of listLeaves(coupon)) {
    t.throws(() => command.read(["--nonsense"]), new UsageError("unknown option --nonsense"), name);
    t.throws(() => command.read([...fives, "--help=no"]), UsageError, name);
    t.throws(() => command.read(fives), UsageError, name);
  }
  for (const word of ["toString", "help"])
    t.throws(() => coupon.read([word]), new UsageError(`unknown command "${word}"`));
  const webhooks = chooseCommand(coupon, ["webhooks"]).command;
  t.throws(() => webhooks.read([]), new UsageError("COMMAND is missing"));
});

t.test("the help of start and console names the settings of docs/operate.md, and no help names others", async (t) => {
  const document = readFileSync(path.join(root, "docs/operate.md"), "utf8");
  const settings = [...document.matchAll(/^\| (`[A-Z_`, ]+`) \|/gm)].flatMap(([, cell]) => cell!.match(/[A-Z_]+/g)!);
  const namedBy = (name: string) =>
    formatHelp("coupon", chooseCommand(coupon, name.split(" ")).command).match(
      /\b[A-Z]+_[A-Z_]+\b|\b(PORT|HOST|PGPASSWORD|DOCS)\b/g,
    ) ?? [];
  const ofListen = ["WEBHOOK_SECRET"];
  const ofSign = ["CREDENTIAL_SECRET"];
  const ofCells = ["CELL_REPORT_URL", "CELL_URL"];
  const named = [...namedBy("start"), ...namedBy("console"), ...ofListen, ...ofSign, ...ofCells];
  t.strictSame([...new Set(named)].sort(), settings.toSorted());
  t.strictSame([...new Set(namedBy("webhooks listen"))].sort(), ["WEBHOOK_ALLOW", ...ofListen]);
  t.strictSame([...new Set(namedBy("sign"))], ofSign);
  t.strictSame([...new Set(namedBy("cells add"))].filter((name) => name.startsWith("CELL_")).sort(), ofCells);
  for (const [name] of listLeaves(coupon)) {
    const others = namedBy(name).filter((each) => !settings.includes(each));
    t.strictSame(others, [], name);
  }
});
