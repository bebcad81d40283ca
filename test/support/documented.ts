// Checks an answer against the documents: status, code, shape, request_id and time.
import { errors } from "../../src/http/errors.ts";
import type { Reply } from "./client.ts";

// Neither a limit nor a failure is expected.
const unexpected: readonly number[] = [429, 500, 503];
const codes = Map.groupBy(
  Object.entries<{ status: number }>(errors).filter(([, { status }]) => !unexpected.includes(status)),
  ([, { status }]) => status,
);

function isDocumented(status: number, code: string | undefined): boolean {
  // Answered before there is a complete request.
  if (status === 431) return code === "PAYLOAD_TOO_LARGE";
  return codes.get(status)?.some(([name]) => name === code) ?? false;
}

// Far beyond the 4 s that clients are promised, because the machine may stall. Slow enough input would still be found.
const withinMs = 20_000;

type Given = Pick<Reply, "status" | "headers" | "json" | "text">;

// Describes what is wrong with an answer; null: nothing.
export function findUndocumented({ status, headers, json, text }: Given, afterMs: number): string | null {
  if (afterMs > withinMs) return `answered after ${Math.round(afterMs)} ms`;
  if (typeof headers["x-request-id"] !== "string" || headers["x-request-id"] === "")
    return `${status} without x-request-id`;
  if (status === 200) return json === null ? `200 ${text}` : null;
  if (!isDocumented(status, json?.code)) return `${status} ${text}`;
  if (Object.keys(json).join() !== "code,message,request_id,details" || typeof json.message !== "string")
    return `not the shape of an error: ${text}`;
  const name = json.request_id.replace(/[^ -~]|^ +| +$/gu, encodeURIComponent);
  // A replay keeps the request_id of the first call, which may differ from this one's.
  return headers["x-request-id"] === name || headers["idempotent-replayed"] === "true"
    ? null
    : `x-request-id is ${String(headers["x-request-id"])}, request_id ${json.request_id}`;
}
