// One JSON line a request, and the few things an operator must know. No body, code, nonce, signature or request
// target ever gets here; what is logged of an error is its name, message and stack.
import { pino, type DestinationStream, type Logger } from "pino";

export type { Logger };

// Lines are written together, this late at most: a write of its own costs each request a twentieth of its time. At the
// end of the process they go out; only kill -9 loses the last ones.
const flushEveryMs = 50;
const flushAtLength = 8_192;

export function createLog(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: describeError } };
  return pino(options, destination ?? openOutput());
}

function openOutput(): DestinationStream {
  let lines = "";
  const flush = () => {
    if (lines !== "") process.stdout.write(lines);
    lines = "";
  };
  setInterval(flush, flushEveryMs).unref();
  process.once("exit", flush);
  return {
    write(line) {
      lines += line;
      if (lines.length >= flushAtLength) flush();
    },
  };
}

// A driver's error carries the statement's parameters, the hint and detail of a row: only these fields are taken.
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, where } = error as { code?: unknown; where?: unknown };
  return { name: error.name, code, message: error.message, where, stack: error.stack };
}
