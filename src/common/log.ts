// The log: one JSON line per request, and a few other events that an operator must know. It never contains a body,
// code, nonce, signature or request target.
import { pino, type DestinationStream, type Logger } from "pino";

export type { Logger };

// Lines are written in blocks, because one write per line takes 5 % of the time of a request. The process writes the
// last block when it ends; only kill -9 loses it.
const flushEveryMs = 50;
const flushAtLength = 8_192;

export function createLog(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: describeError } };
  return pino(options, destination ?? openOutput());
}

// Begins with a line break, because the last line may be cut.
const describeLoss = () =>
  `\n{"level":40,"time":"${new Date().toISOString()}","msg":"lines of the log are missing here: its disk was full"}\n`;

// The log may be a file on a full disk, or a file that has reached a quota or the maximum file size. Losing lines is
// better than ending the program.
const isFull = ({ code }: NodeJS.ErrnoException) => code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG";

function openOutput(): DestinationStream {
  let lines = "";
  let hasLost = false;
  const flush = () => {
    if (lines === "") return;
    const written = hasLost ? describeLoss() + lines : lines;
    hasLost = false;
    lines = "";
    process.stdout.write(written);
  };
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (!isFull(error)) throw error;
    hasLost = true;
  });
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
