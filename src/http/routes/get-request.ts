import { z } from "zod";
import { requestId } from "../fields.ts";
import type { Route } from "../route.ts";

// A request_id may contain any printable character, so this segment is percent-decoded. No other segment is.
const segment = z
  .string()
  .transform((value, context) => {
    try {
      return decodeURIComponent(value);
    } catch {
      context.addIssue({ code: "custom", message: "must be percent-encoded UTF-8" });
      return z.NEVER;
    }
  })
  .pipe(requestId);

const input = z.strictObject({ request_id: segment });

export const getRequest: Route = {
  operation: "get_request",
  method: "GET",
  path: "/v1/requests/{request_id}",
  isWrite: false,
  reveals: "nothing",
  schema: () => input,
};
