// bin/coupon: where it finds the checkout and Node. What its commands do is tested by the name of each command.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { listMigrations } from "../../src/migration/db-files.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { exitCodeOf, type Result } from "../support/program.ts";

const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { version: string };

async function run(file: string, args: string[], options: { cwd?: string; PATH?: string } = {}): Promise<Result> {
  const { cwd = root, PATH = process.env["PATH"] } = options;
  const program = spawn(file, args, { cwd, env: { PATH } });
  const [stdout, stderr] = await Promise.all([text(program.stdout), text(program.stderr)]);
  return { code: await exitCodeOf(program), stdout, stderr };
}

t.test("coupon --version prints the version and the newest migration", async (t) => {
  t.strictSame(await run("bin/coupon", ["--version"]), {
    code: 0,
    stdout: `coupon ${version}, migration ${listMigrations().at(-1)}\n`,
    stderr: "",
  });
  fits(t, await run("bin/coupon", ["--version", "--nonsense"]), { code: 2, stdout: "" });
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
  for (const file of [path.join(folder, "bin/coupon"), "./bin/coupon", "./programs/coupon"])
    fits(t, await run(file, ["--version"], { cwd: folder }), { code: 0, stdout: /^coupon / }, file);
  const PATH = `${folder}/bin:${process.env["PATH"]}`;
  fits(t, await run("coupon", ["codes", "a", "b"], { cwd: "/", PATH }), {
    code: 2,
    stdout: "",
    stderr: /^unexpected argument "b"\nusage: coupon codes BATCH/,
  });
});

t.test(
  "coupon says when its packages or Node are missing; without a Node of the checkout it takes the one in PATH",
  async (t) => {
    const folder = t.testdir();
    cpSync(path.join(root, "bin"), path.join(folder, "bin"), { recursive: true });
    const tools = path.join(folder, "tools");
    mkdirSync(tools);
    for (const tool of ["dirname", "readlink"]) symlinkSync(`/usr/bin/${tool}`, path.join(tools, tool));
    const runHere = () => run(path.join(folder, "bin/coupon"), ["codes", "a b"], { PATH: tools });
    const putNode = (answer: string) =>
      writeFileSync(
        path.join(tools, "node"),
        `#!/bin/sh\n[ "$1" = --version ] && echo ${answer} || printf '%s\\n' "$@"\n`,
        {
          mode: 0o755,
        },
      );
    t.strictSame(await runHere(), {
      code: 1,
      stdout: "",
      stderr: `coupon needs its packages: run npm ci in ${folder}\n`,
    });
    mkdirSync(path.join(folder, "node_modules"));
    const missing = {
      code: 1,
      stdout: "",
      stderr: /^coupon needs Node 24 or newer, in \S+\/node_modules\/\.bin or in PATH/,
    };
    fits(t, await runHere(), missing, "no node at all");
    for (const old of ["v20.20.2", "v23.11.0"]) {
      putNode(old);
      fits(t, await runHere(), missing, old);
    }
    for (const current of ["v24.0.0", "v100.1.0"]) {
      putNode(current);
      const { code, stdout, stderr } = await runHere();
      t.strictSame({ code, stderr }, { code: 0, stderr: "" }, current);
      t.match(stdout, /\/src\/coupon\.ts\ncodes\na b\n$/, current);
    }
  },
);
