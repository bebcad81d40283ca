// The command line of every program of ours: help, and what is not understood. Each program is started once; what they
// share, and what each command declares, is tested without a process.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { chooseCommand, UsageError, type Command } from "../../src/common/command.ts";
import { formatHelp, formatUsage } from "../../src/common/help.ts";
import { loadCoupon } from "../../src/coupon.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { exitCodeOf, spawnProgram, type Result } from "../support/program.ts";

const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
const coupon = await loadCoupon();
const programs = Object.keys(scripts).filter((name) => scripts[name] === `exec bin/coupon ${name}`);
// `npm test` hands its arguments to tap, and `npm run format` to Prettier.
const tools = Object.keys(scripts).filter((name) => ![...programs, "test", "format"].includes(name));
const settings = [...readFileSync(path.join(root, "docs/operate.md"), "utf8").matchAll(/^\| (`[A-Z_`, ]+`) \|/gm)]
  .flatMap(([, cell]) => cell!.match(/[A-Z_]+/g)!)
  .sort();
const dataDir = path.join(t.testdir(), "data");

async function run(name: string, args: string[], npmScript = name): Promise<Result> {
  // No program starts with such a port, so a program that starts is noticed.
  const env = { PORT: "none", BENCH_DATABASE_URL: "none", DATA_DIR: dataDir, npm_lifecycle_event: npmScript };
  const program = spawnProgram(name, { args, env });
  const [stdout, stderr] = await Promise.all([text(program.stdout!), text(program.stderr!)]);
  return { code: await exitCodeOf(program), stdout, stderr };
}

const callOf = (name: string) => `npm ${name === "start" ? "" : "run (-s )?"}${name}`;

/** The commands that run, with the words that choose them. */
function listLeaves(command: Command, names: string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[names.join(" "), command]];
  return command.commands.flatMap((each) => listLeaves(each, [...names, each.name]));
}

t.test("coupon has a command for every npm script that runs the service", async (t) => {
  const names = coupon.commands.map(({ name }) => name);
  t.strictSame(names.slice(0, programs.length), programs);
  t.strictSame(tools, ["bench", "chaos", "rehearse", "snapshot", "openapi", "check", "model", "mutate"]);
});

for (const name of programs) {
  t.test(`npm run ${name} with an unknown option: exit code 2, and nothing happens`, async (t) => {
    const usage = `usage: ${callOf(name)}[^]*\nhelp:  ${callOf(name)} -- --help\n$`;
    const result = await run(name, ["--nonsense"]);
    fits(t, result, { code: 2, stdout: "", stderr: new RegExp(`^unknown option "?--nonsense"?\n${usage}`) });
    t.notOk(existsSync(dataDir));
  });
}

for (const name of tools) {
  t.test(`npm run ${name} -h, whatever else is there: help, without a valid setting`, async (t) => {
    const help = await run(name, ["any", "-h", "--nonsense"]);
    fits(t, help, { code: 0, stderr: "", stdout: new RegExp(`^usage: ${callOf(name)}( |\n)`) });
    t.match(help.stdout, /\n {2}-h, --help +prints this text\n/);
    t.match(help.stdout, /\nExit codes: 0 [^\n]+, 1 [^\n]+, 2 wrong arguments\n$/);
  });
}

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

t.test("a program that coupon starts says coupon, and one that npm starts says npm", async (t) => {
  const replay = ["replay", "-h"];
  fits(t, await run("webhooks", replay), { code: 0, stdout: /^usage: npm run -s webhooks -- replay TENANT EVENT/ });
  // npm passes the name of its script on to whatever that script starts.
  fits(t, await run("webhooks", replay, "test"), { code: 0, stdout: /^usage: coupon webhooks replay TENANT EVENT/ });
});

t.test("examples follow the call as it was typed", async (t) => {
  const { command } = chooseCommand(coupon, ["codes"]);
  t.match(formatHelp("npm run -s codes", command), "\nExamples:\n  npm run -s codes -- bat_… > codes.csv\n");
  t.match(formatHelp("coupon codes", command), "\nExamples:\n  coupon codes bat_… > codes.csv\n");
  for (const [name, settings] of [
    ["start", "PORT=9000 DATA_DIR=/srv/coupon"],
    ["serve", "PORT=8081 METRICS_PORT=9091"],
    ["work", "WEBHOOK_ALLOW=10.0.0.0/8"],
  ] as const) {
    const program = chooseCommand(coupon, [name]).command;
    for (const call of [`npm run ${name}`, `coupon ${name}`])
      t.match(formatHelp(call, program), `\nExamples:\n  ${call}\n  ${settings} ${call}\n`);
  }
  for (const [name, { examples = [] }] of listLeaves(coupon))
    for (const example of examples) t.notMatch(example, /\b(npm|coupon) /, name);
});

t.test("the usage of each command has its flags, and says what kind of value each takes", async (t) => {
  for (const [name, command] of listLeaves(coupon)) {
    const shown = formatUsage(`coupon ${name}`, command).match(/--[a-z-]+( (N|SECONDS|WHY)(?=\]|$| ))?/gm) ?? [];
    const declared = Object.entries(command.flags).map(([flag, one]) =>
      one.type === "switch" ? `--${flag}` : `--${flag} ${one.value}`,
    );
    t.strictSame([...new Set(shown)].sort(), declared.sort(), name);
  }
});

t.test("the help of coupon names each command with its first sentence, and --version", async (t) => {
  const help = formatHelp("coupon", coupon).replace(/\n {10,}/g, " ");
  t.match(help, /\n  -h, --help +prints this text\n  --version +prints the version\n/);
  for (const { name, about } of coupon.commands) {
    const sentence = about.slice(0, about.indexOf("."));
    t.match(help, new RegExp(`\n  ${name}( .*)?  ${sentence.replace(/[()]/g, "\\$&")}\n`), name);
  }
});

t.test("the help of start names every setting of docs/operate.md, and no help names another one", async (t) => {
  const namedBy = (name: string) =>
    formatHelp("coupon", chooseCommand(coupon, name.split(" ")).command).match(
      /\b[A-Z]+_[A-Z_]+\b|\b(PORT|HOST|PGPASSWORD|DOCS)\b/g,
    ) ?? [];
  const ofListen = ["WEBHOOK_SECRET"];
  t.strictSame([...new Set([...namedBy("start"), ...ofListen])].sort(), settings);
  t.strictSame([...new Set(namedBy("webhooks listen"))].sort(), ["WEBHOOK_ALLOW", ...ofListen]);
  for (const [name] of listLeaves(coupon))
    t.strictSame(
      namedBy(name).filter((each) => !settings.includes(each)),
      [],
      name,
    );
});
