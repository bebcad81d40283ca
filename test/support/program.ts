// The programs of the service as an operator starts them: as separate processes, as their npm scripts do.
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { formatUrl } from "../../src/common/database-address.ts";
import { root } from "./copy.ts";
import type { Running } from "./service.ts";
import { waitFor } from "./wait-until.ts";

export type Result = { code: number | null; stdout: string; stderr: string };
export type Database = Pick<Running, "address" | "masterKeyText">;
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
  };
}

export function startProgram(service: Database, name: string, ...args: string[]): ChildProcessWithoutNullStreams {
  return startProgramIn(root, service, name, ...args);
}

// From another checkout than this one.
export function startProgramIn(
  folder: string,
  service: Database,
  name: string,
  ...args: string[]
): ChildProcessWithoutNullStreams {
  return spawnProgram(name, { folder, args, env: environmentOf(service) }) as ChildProcessWithoutNullStreams;
}

// Resolves when the output matches, and rejects when the program ends before.
export function untilPrinted(program: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<RegExpExecArray> {
  let output = "";
  const printed = new Promise<RegExpExecArray>((resolve, reject) => {
    for (const stream of [program.stdout, program.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
        const match = pattern.exec(output);
        if (match !== null) resolve(match);
      });
    }
    program.once("close", () => reject(new Error(`the program ended without printing ${pattern}: ${output}`)));
  });
  return waitFor(`a program to print ${pattern}`, printed);
}

// What the npm script executes. The service is `bin/coupon`, in its folder; our tools are `node FILE`.
function commandOf(folder: string, name: string): string[] {
  const { scripts } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const [, file, ...args] = scripts[name]!.split(" ");
  return [file === "node" ? process.execPath : path.join(folder, file!), ...args];
}

export async function runProgram(
  service: Database,
  name: string,
  args: string[],
  input: string | Buffer = "",
): Promise<Result> {
  const program = startProgram(service, name, ...args);
  // A program may end without reading its input.
  program.stdin.on("error", () => {});
  program.stdin.end(input);
  const output = Promise.all([text(program.stdout), text(program.stderr)]);
  const [stdout, stderr] = await waitFor(`the output of ${name}`, output);
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
