// Shared by all programs: the check of the Node version, the stop on a signal, the report of a fatal error.
//
// Node prints an uncaught error with all its properties. Errors of the driver hold values of statements and rows, so
// fatal errors go through the serializer of the log to standard error.
import { writeSync } from "node:fs";
import { createLog, type Logger } from "./log.ts";

const isNodeTooOld = Number(process.versions.node.split(".")[0]) < 24;
if (isNodeTooOld) {
  console.error(
    `Node 24 or newer is needed; this is ${process.version}. ` +
      "On Linux x64, npm ci installs one: start with npm or bin/coupon, not with node.",
  );
  process.exit(1);
}

/** The longest time of an orderly stop. docs/operate.md promises 10 s. */
const stopDeadlineMs = 9_000;

/** Ctrl-C under npm arrives twice: from the terminal and from npm. */
const repeatedSignalMs = 1_000;

export type Part = { stop(): Promise<void> };
let isStopping = false;

/**
 * Returns an empty list, to which a program adds its parts as they start. A signal stops them, the last one first, and
 * the log says so in one line.
 */
export function stopOnSignal(log: Logger): Part[] {
  const running: Part[] = [];
  onStop(async () => {
    for (const part of running.toReversed()) await part.stop();
  }, log);
  return running;
}

/**
 * Runs `handler` once on SIGTERM or SIGINT, then ends the process with exit code 0. The process also ends if the
 * handler fails or hangs. That is safe at any moment, because everything that matters is in committed transactions.
 */
export function onStop(handler: () => Promise<void>, log?: Logger): void {
  // equivalent mutant (literal): it is set before it is read
  let firstAt = 0;
  const end = (level: "info" | "warn", fields: { signal: string; err?: unknown }, text: string): void => {
    log?.[level]({ ...fields, duration_ms: Math.round(performance.now() - firstAt) }, text);
    process.exit(0);
  };
  const stop = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      // A signal more than a second later is a second request to stop.
      if (performance.now() - firstAt > repeatedSignalMs) end("warn", { signal }, "stopped at once by a second signal");
      return;
    }
    isStopping = true;
    firstAt = performance.now();
    setTimeout(() => end("warn", { signal }, "stopped before everything had ended"), stopDeadlineMs).unref();
    handler().then(
      () => end("info", { signal }, "stopped"),
      (err: unknown) => end("warn", { signal, err }, "stopped, but a part failed to stop"),
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/**
 * Runs a command-line program. A failure is one line on stderr and exit code 1. Errors that an operator can fix, such
 * as a wrong setting, print only their message; bugs print their stack too.
 */
export async function runProgram(program: () => Promise<void>): Promise<void> {
  process.on("uncaughtException", (error, origin) =>
    die(error, origin === "unhandledRejection" ? "unhandled rejection" : "uncaught exception"),
  );
  try {
    await program();
  } catch (error) {
    // A program that is stopped while it starts throws an error, because its parts end. That does not count as a
    // failure.
    if (isStopping) return;
    if (isBug(error)) die(error, "the program failed");
    console.error(messageOf(error));
    process.exit(1);
  }
}

/** Writes one line in the form of the log and ends with exit code 1: the process is in an unknown state. */
function die(error: unknown, what: string): never {
  try {
    createLog("fatal", { write: (line) => void writeSync(2, line) }).fatal({ err: error }, what);
  } finally {
    process.exit(1);
  }
}

/** Whether this file is the program that was started, and not imported by another file. */
export function isProgram(meta: ImportMeta): boolean {
  return meta.main;
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") {
    // Node reports a refused connection to a name with several addresses like this.
    return error.errors.map(messageOf).join("; ");
  }
  return error instanceof Error ? error.message : String(error);
}

function isBug(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    (error instanceof Error && error.name === "AssertionError")
  );
}
