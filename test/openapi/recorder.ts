// Keeps the first answer of each operation, of each error code and of each event type, as examples for the API
// description.
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Examples } from "../../src/http/openapi/examples.ts";
import type { Variant } from "../../src/gate/gate.ts";
import { root } from "../support/copy.ts";
import type { Client, Reply } from "../support/client.ts";

export const examplesFile = path.join(root, "src/http/openapi/examples.json");

// An example shows no real code.
const shownCode = "0123456789ABCDEF";

export type Recorder = ReturnType<typeof createRecorder>;

export function createRecorder() {
  const examples: Examples = { operations: { A: {}, B: {} }, errors: {}, events: {} };

  function keepError(reply: Reply): Reply {
    const { code, details } = reply.json;
    const name = code === "NOT_FOUND" ? `NOT_FOUND.${details.resource}` : code;
    examples.errors[name] ??= reply.json;
    return reply;
  }

  /** Sends the request, and keeps its answer. */
  async function send(by: Client, [variant, operation]: [Variant, string], target: string, body: object | null = null) {
    const reply = await (body === null ? by.get(target) : by.post(target, body));
    if (reply.status !== 200) return keepError(reply);
    const request = body === null ? null : { ...body, ...("coupon" in body && { coupon: shownCode }) };
    examples.operations[variant][operation] ??= { request, answer: reply.json };
    return reply;
  }

  const keepEvent = (event: { event_type: string }) => (examples.events[event.event_type] ??= event);

  return { examples, send, keepError, keepEvent };
}

export function readCommitted(): Examples {
  return JSON.parse(readFileSync(examplesFile, "utf8")) as Examples;
}

/** What differs between two runs: IDs that the service makes, times, hashes. */
export function maskRun(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value)
      .replace(/\b(bat|cpn|red|rvs|evt|req)_[0-9a-z]{26}\b/g, "$1_x")
      .replace(/\bcur_[\w-]{11}/g, "cur_x")
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "time")
      .replace(/\b20\d\d-\d\d-\d\d\b/g, "date")
      .replace(/\b[0-9a-f]{64}\b/g, "sha256"),
  );
}
