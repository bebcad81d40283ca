// The shape of a route. Everything that differs between operations is here, so that app.ts is the same for all.
import type { z } from "zod";
import type { Variant } from "../gate/gate.ts";
import type { MasterKeys } from "../crypto/keys.ts";

export type Values = Record<string, unknown>;

export type Route = {
  operation: string;
  method: "GET" | "POST";
  // Matched on the raw request target; `{name}` is one segment, taken as it is.
  path: string;
  // Names of query parameters. Together with the segments of the path they are a GET's input.
  query?: readonly string[];
  // Writes are recorded and replayed, and need a request_id.
  isWrite: boolean;
  // The database's answer says which file is meant; download.ts sends that.
  isDownload?: true;
  // The single source for validation; strict. A tenant's variant decides which fields exist.
  schema: (variant: Variant) => z.ZodType<Values>;
  // From the validated input (coupon already a lookup hash, the call's own request_id left out) to what gate.perform takes.
  args?: (values: Values, keys: MasterKeys) => Values;
};
