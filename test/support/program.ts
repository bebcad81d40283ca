// The programs of the service as an operator starts them: as separate processes, as their npm scripts do.
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { formatUrl } from "../../src/config/database-address.ts";
import { root } from "./copy.ts";
import type { Scenario, Teardown } from "./scenario.ts";
import { waitFor, waitUntil } from "./wait-until.ts";

export type Result = { code: number | null; stdout: string; stderr: string };
export type Database = Pick<Scenario, "address" | "masterKeyText">;
// folder: the checkout that the program runs from.
// flags: options of Node.
export type SpawnOptions = {
  folder?: string;
  flags?: string[];
  args?: string[];
  env: Record<string, string>;
  stdio?: StdioOptions;
};

// Every other function that starts a program uses this one. The environment is only what is given, PATH, the folder of
// compiled modules, and the folder where `npm run mutate` looks for the lines that ran.
export function spawnProgram(
  name: string,
  { folder = root, flags = [], args = [], env, stdio = "pipe" }: SpawnOptions,
): ChildProcess {
  const [file, ...given] = commandOf(folder, name);
  return spawn(file!, [...given, ...args], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      NODE_V8_COVERAGE: process.env["NODE_V8_COVERAGE"],
      ...(flags.length > 0 && { NODE_OPTIONS: flags.join(" ") }),
      ...env,
    },
    stdio,
  });
}

export function environmentOf({ address, masterKeyText }: Database): Record<string, string> {
  return {
    DATABASE_URL: formatUrl(address),
    COUPON_MASTER_KEY: masterKeyText,
    // The receivers of tests are on this machine.
    WEBHOOK_ALLOW: "127.0.0.0/8",
    PORT: "0",
    CONSOLE_PORT: "0",
  };
}

export type Launched = {
  program: ChildProcessWithoutNullStreams;
  // What it has written so far.
  output(): string;
  // Rejects when the program ends before.
  untilPrinted(pattern: RegExp): Promise<RegExpExecArray>;
  // Sends the signal, and returns all that the program has written.
  stop(signal?: NodeJS.Signals): Promise<Result>;
};

// Starts a program that runs until it is stopped, at the latest by the end of the test.
export function launch(t: Teardown, name: string, options: SpawnOptions): Launched {
  const program = spawnProgram(name, options) as ChildProcessWithoutNullStreams;
  t.teardown(() => program.kill("SIGKILL"));
  program.stdin.end();
  let output = "";
  for (const stream of [program.stdout, program.stderr]) stream.on("data", (chunk) => (output += chunk));
  const result = readResult(program);
  return {
    program,
    output: () => output,
    untilPrinted: (pattern) =>
      waitUntil(`${name} to print ${pattern}`, () => {
        const found = pattern.exec(output);
        const isOver = program.stdout.readableEnded && program.stderr.readableEnded;
        if (found === null && isOver) throw new Error(`${name} ended without printing ${pattern}: ${output}`);
        return found;
      }),
    async stop(signal = "SIGTERM") {
      program.kill(signal);
      return waitFor(`the end of ${name}`, result);
    },
  };
}

// What the npm script executes, or a file. The service is `bin/coupon`, in its folder; our tools are `node FILE`.
function commandOf(folder: string, name: string): string[] {
  const { scripts } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const [, file, ...args] = (scripts[name] ?? `exec node ${name}`).split(" ");
  return [file === "node" ? process.execPath : path.join(folder, file!), ...args];
}

// Runs a program that ends by itself.
export function runProgram(
  name: string,
  { input = "", ...options }: SpawnOptions & { input?: string | Buffer },
): Promise<Result> {
  return resultOf(spawnProgram(name, options), input);
}

const longestMs = 120_000;

// A program that still runs after two minutes is killed, and its result has no code.
export async function resultOf(program: ChildProcess, input: string | Buffer = ""): Promise<Result> {
  // A program may end without reading its input.
  program.stdin?.on("error", () => {}).end(input);
  const timer = setTimeout(() => program.kill("SIGKILL"), longestMs);
  return readResult(program).finally(() => clearTimeout(timer));
}

export async function readResult(program: ChildProcess): Promise<Result> {
  const read = async (stream: Readable | null) => (stream === null ? "" : text(stream));
  const [stdout, stderr] = await Promise.all([read(program.stdout), read(program.stderr)]);
  return { code: await exitCodeOf(program), stdout, stderr };
}

export const hasEnded = (program: ChildProcess): boolean => program.exitCode !== null || program.signalCode !== null;

export function exitCodeOf(program: ChildProcess): Promise<number | null> {
  return waitFor(`the end of ${program.spawnargs.join(" ")}`, endOf(program));
}

// For a program that runs as long as it likes.
export function endOf(program: ChildProcess): Promise<number | null> {
  if (hasEnded(program)) return Promise.resolve(program.exitCode);
  return new Promise((resolve) => program.once("exit", resolve));
}
