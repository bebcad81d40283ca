// The command line of every npm script that is a program of ours: help, and what is not understood.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { root } from "../support/copy.ts";
import { exitCodeOf, spawnProgram, type Result } from "../support/program.ts";

const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
// `npm test` hands its arguments to tap, and `npm run format` to Prettier.
const names = Object.keys(scripts).filter((name) => name !== "test" && name !== "format");
const settings = [...readFileSync(path.join(root, "docs/operate.md"), "utf8").matchAll(/^\| (`[A-Z_`, ]+`) \|/gm)]
  .flatMap(([, cell]) => cell!.match(/[A-Z_]+/g)!)
  .sort();
// Several dozen programs, on a machine that may be busy.
t.setTimeout(600_000);
const dataDir = path.join(t.testdir(), "data");

async function run(name: string, ...args: string[]): Promise<Result> {
  // No program starts with such a port, so a program that starts is noticed.
  const program = spawnProgram(name, { args, env: { PORT: "none", BENCH_SECONDS: "none", DATA_DIR: dataDir } });
  const [stdout, stderr] = await Promise.all([text(program.stdout!), text(program.stderr!)]);
  return { code: await exitCodeOf(program), stdout, stderr };
}

const callOf = (name: string) => `npm ${name === "start" ? "" : "run (-s )?"}${name}`;

for (const name of names) {
  t.test(
    `${name} -h, whatever else is there: help on standard output, without a database or a valid setting`,
    async (t) => {
      const help = await run(name, "any", "-h", "--nonsense");
      t.match(help, { code: 0, stderr: "", stdout: new RegExp(`^usage: ${callOf(name)}( |\n)`) });
      t.match(help.stdout, /\n {2}-h, --help +prints this text\n/);
      t.match(help.stdout, /\nExit codes: 0 [^\n]+, 1 [^\n]+, 2 wrong arguments\n$/);
    },
  );

  t.test(`${name} with an unknown option or a surplus word: exit code 2, and nothing happens`, async (t) => {
    const usage = `usage: ${callOf(name)}[^]*\nhelp:  ${callOf(name)} -- --help\n$`;
    const surplus = ["start", "migrate", "codes"].includes(name) ? [["one", "two", "three"]] : [];
    for (const args of [["--nonsense"], ...surplus])
      t.match(
        await run(name, ...args),
        { code: 2, stdout: "", stderr: new RegExp(`^[^\n]+\n${usage}`) },
        args.join(" "),
      );
    t.notOk(existsSync(dataDir));
  });
}

t.test("the help of start names every setting of docs/operate.md, and no help names another one", async (t) => {
  const namedBy = async (name: string) =>
    (await run(name, "--help")).stdout.match(/\b[A-Z]+_[A-Z_]+\b|\b(PORT|HOST|PGPASSWORD)\b/g)!;
  t.strictSame([...new Set(await namedBy("start"))].sort(), settings);
  for (const name of ["serve", "work", "migrate", "apply", "codes", "webhooks", "statements", "demo"])
    t.strictSame(
      (await namedBy(name)).filter((each) => !settings.includes(each)),
      [],
      name,
    );
});

t.test("each command of webhooks and statements has its own help", async (t) => {
  t.match(
    (await run("webhooks", "replay", "-h")).stdout,
    /^usage: npm run -s webhooks -- replay TENANT EVENT --reason/,
  );
  t.match((await run("statements", "verify", "--help")).stdout, /^usage: npm run -s statements -- verify\n/);
  t.match(await run("webhooks", "toString"), { code: 2, stderr: /^unknown command "toString"\n/ });
  t.match(await run("webhooks"), { code: 2, stderr: /^COMMAND is missing\n/ });
});
