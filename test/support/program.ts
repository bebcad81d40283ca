// The programs as an operator starts them: processes of their own, beside the service of a test.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { Address } from "../../src/database/connect.ts";
import type { Running } from "./service.ts";

export type Result = { code: number | null; stdout: string; stderr: string };

export function startProgram(service: Running, name: string, ...args: string[]): ChildProcessWithoutNullStreams {
  return startIn(".", service, name, ...args);
}

export type Database = Pick<Running, "address" | "masterKeyText">;

// The program of another checkout than this.
export function startIn(
  folder: string,
  { address, masterKeyText }: Database,
  name: string,
  ...args: string[]
): ChildProcessWithoutNullStreams {
  // Receivers of tests are on this machine.
  const env = {
    PATH: process.env["PATH"],
    DATABASE_URL: urlOf(address),
    COUPON_MASTER_KEY: masterKeyText,
    WEBHOOK_ALLOW: "127.0.0.0/8",
    PORT: "0",
  };
  return spawn(process.execPath, [...commandOf(folder, name), ...args], { cwd: folder, env });
}

// What a program has said once it has said `sign`. One that ends before is an error.
export function untilSaid(program: ChildProcessWithoutNullStreams, sign: RegExp): Promise<RegExpExecArray> {
  let said = "";
  return new Promise((resolve, reject) => {
    for (const stream of [program.stdout, program.stderr]) {
      stream.on("data", (chunk) => {
        said += chunk;
        const match = sign.exec(said);
        if (match !== null) resolve(match);
      });
    }
    program.once("close", () => reject(new Error(`ended without ${sign}: ${said}`)));
  });
}

// With the flags that npm gives them.
function commandOf(folder: string, name: string): string[] {
  const { scripts } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  return scripts[name]!.split(" ").slice("exec node".split(" ").length);
}

export async function runProgram(service: Running, name: string, args: string[], input = ""): Promise<Result> {
  const program = startProgram(service, name, ...args);
  // One that ends without reading its input is no failure of the test.
  program.stdin.on("error", () => {});
  program.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(program.stdout), text(program.stderr)]);
  return { code: await codeOf(program), stdout, stderr };
}

export function codeOf(program: ChildProcessWithoutNullStreams): Promise<number | null> {
  if (program.exitCode !== null || program.signalCode !== null) return Promise.resolve(program.exitCode);
  return new Promise((resolve) => program.once("exit", resolve));
}

export function urlOf(address: Address): string {
  if ("url" in address) return address.url;
  const { host, port, user, database, password } = address;
  const login = [user, password]
    .filter((part) => part !== undefined)
    .map(encodeURIComponent)
    .join(":");
  return `postgres://${login}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}
