// A call, its answer, and the answer that the model expects.
import type { Caller } from "./kinds.ts";

export type Operation =
  | "lock"
  | "redeem"
  | "confirm"
  | "cancel"
  | "reverse"
  | "void"
  | "query"
  | "allocate_batch"
  | "get_batch"
  | "get_request";
// `values`: the body with the normalized code and without request_id.
export type Call = {
  by: Caller;
  operation: Operation;
  requestId: string;
  key: string | null;
  values: Record<string, unknown>;
};
export type Reply = { status: number; text: string; json: any; isReplay: boolean };
// A field may be a pattern or a function that the answer must match. The `details` of a 400 are the path of the field.
// `learn` must run with the answer before the next call is judged.
export type Expected = {
  status: number;
  code?: string;
  details?: unknown;
  fields?: Record<string, unknown>;
  replayOf?: string;
  learn?: (reply: Reply) => void;
};
export type Recorded = { call: Call; status: number; text: string };

export const uuidId = (prefix: string) => new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`);
export const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export const refuse = (status: number, code: string, details: unknown = null): Expected => ({ status, code, details });
export const notFound = (resource: string): Expected => refuse(404, "NOT_FOUND", { resource });
export const invalid = (path: string): Expected => refuse(400, "INVALID_REQUEST", path);
export const ok = (fields: Record<string, unknown>, learn: (reply: Reply) => void = () => {}): Expected => ({
  status: 200,
  fields: { ok: true, ...fields },
  learn,
});

// The same text for equal values, whatever the order of their fields.
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, field) =>
    typeof field === "object" && field !== null && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort())
      : field,
  );
}
