// The log: one JSON line per request, and a few other events that an operator must know. It never contains a body,
// code, nonce, signature or request target.
import { pino, type DestinationStream, type Logger } from "pino";

export type { Logger };

// Lines are written in blocks, because a write per line costs 5 % of the time of a request. The process writes the last
// block when it ends; only kill -9 loses it.
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

// Logs only these fields. A driver's error also holds the parameters of the statement and values of a row.
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, where } = error as { code?: unknown; where?: unknown };
  return { name: error.name, code, message: error.message, where, stack: error.stack };
}
