// What every program does alike: the check of the Node version, the end by signal, the last words.
//
// Node itself would print an error that nobody caught with all its properties, and the driver's carry the values of a statement
// and of a row. So last words go through the log's serializer, on standard error.
import { writeSync } from "node:fs";
import { createLog } from "./log.ts";

const isNodeTooOld = Number(process.versions.node.split(".")[0]) < 24;
if (isNodeTooOld) {
  console.error(
    `Node 24 or newer is needed, this is ${process.version}. ` +
      "On Linux x64 npm scripts bring their own: start with npm, not with node.",
  );
  process.exit(1);
}

/** How long an orderly end may take; README promises 10 s. */
const stopDeadlineMs = 9_000;

/** Ctrl-C under npm arrives twice, once from the terminal and once from npm. */
const repeatedSignalMs = 1_000;

/**
 * Runs `handler` once on SIGTERM or SIGINT, then ends the process with exit code 0. A handler that
 * fails or hangs cannot keep the process: every step of ours is safe to cut off at any moment,
 * since what matters is in committed transactions.
 */
export function onStop(handler: () => Promise<void>): void {
  let firstAt: number | null = null;
  const stop = (): void => {
    if (firstAt !== null) {
      // Somebody who asks again after a second means it.
      if (Date.now() - firstAt > repeatedSignalMs) process.exit(0);
      return;
    }
    firstAt = Date.now();
    setTimeout(() => process.exit(0), stopDeadlineMs).unref();
    handler()
      .catch((error: unknown) => console.error(`while stopping: ${messageOf(error)}`))
      .finally(() => process.exit(0));
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/**
 * Runs a command-line program: a failure is one line on stderr and exit code 1. The stack is for
 * bugs only; what an operator can mend (a wrong setting, no database) has a message that says so.
 */
export async function runProgram(program: () => Promise<void>): Promise<void> {
  process.on("uncaughtException", (error, origin) =>
    die(error, origin === "unhandledRejection" ? "a rejection that nobody handled" : "an exception that nobody caught"),
  );
  try {
    await program();
  } catch (error) {
    if (isBug(error)) die(error, "the program failed");
    console.error(messageOf(error));
    process.exit(1);
  }
}

/** One line of the log, and exit code 1: what is left in an unknown state must not go on. */
function die(error: unknown, what: string): never {
  try {
    createLog("fatal", { write: (line) => void writeSync(2, line) }).fatal({ err: error }, what);
  } finally {
    process.exit(1);
  }
}

/** Is this file the program that was started, and not a module that another one imports? */
export function isProgram(meta: ImportMeta): boolean {
  return meta.main;
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") {
    // What a refused connection to a name with several addresses looks like.
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
