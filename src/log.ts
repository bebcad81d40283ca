// One JSON line a request, and the few things an operator must know. No body, code, nonce, signature or request
// target ever gets here; what is logged of an error is its name, message and stack.
import { pino, type DestinationStream, type Logger } from "pino";

export type { Logger };

export function createLog(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: describeError } };
  return destination === undefined ? pino(options) : pino(options, destination);
}

// A driver's error carries the statement's parameters, the hint and detail of a row: only these fields are taken.
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, where } = error as { code?: unknown; where?: unknown };
  return { name: error.name, code, message: error.message, where, stack: error.stack };
}
