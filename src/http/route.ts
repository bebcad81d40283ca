// The definition of an operation. Everything that differs between operations is on its route, so that app.ts, the gate,
// the rate limiter and the API description treat all operations alike.
import type { z } from "zod";
import type { Variant } from "../gate/gate.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { ErrorCode, Resource } from "./errors.ts";

export type Values = Record<string, unknown>;

/** consoleUrl: where browsers reach the console, without a slash at its end. */
export type RenderParts = { keys: MasterKeys; consoleUrl: string };

export type Route = {
  operation: string;
  /** What it does, in a sentence. */
  summary: string;
  /** What a caller must know to use it, in a few sentences of Markdown. */
  description: string;
  method: "GET" | "POST";
  // Compared with the raw request target; `{name}` matches one segment, which is not decoded.
  path: string;
  // Names of the query parameters. Together with the path's segments they are the input of a GET.
  query?: readonly string[];
  // Writes need a request_id; their answers are recorded and replayed.
  isWrite: boolean;
  // The call shares no transaction with other calls: it may take long or return much, and tills should not wait for it.
  hasOwnTransaction?: true;
  // The database answers with the description of a file, which download.ts or codes-download.ts sends.
  download?: "statement" | "codes";
  // Completes the body of a 200 that the database sends as plain values. Without it, the body passes through unread.
  render?: (body: string, parts: RenderParts) => string;
  // The only source of validation. The tenant's variant decides which fields exist.
  schema: (variant: Variant) => z.ZodType<Values>;
  // Turns the validated input into the call's args. The coupon is a lookup hash by then; request_id is left out.
  args?: (values: Values, keys: MasterKeys) => Values;
  // The body of a 200. Nothing checks it at run time; see answer-fields.ts. A download has a file instead.
  answer: (variant: Variant) => z.ZodType;
  // The error codes that the operation itself decides. openapi/refusals.ts adds those that follow from other fields.
  refusals?: (variant: Variant) => readonly ErrorCode[];
  // What a NOT_FOUND of it can name.
  resources?: (variant: Variant) => readonly Resource[];
};

/** A type of event that webhooks send, for the API description. */
export type EventType = { type: string; summary: string; schema: z.ZodType };
