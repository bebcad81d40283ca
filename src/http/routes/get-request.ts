import { z } from "zod";
import { ok, timeOfAnswer } from "../answer-fields.ts";
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
  .pipe(requestId)
  .meta({ minLength: 1, maxLength: 128, description: "Percent-encoded." });

const input = z.strictObject({ request_id: segment });

const answer = z.object({
  ok,
  request: z.object({
    request_id: requestId,
    operation: z.string(),
    http_status: z.union([z.literal(200), z.literal(404), z.literal(409), z.literal(422)]),
    response: z.looseObject({}).describe("The recorded answer: the body of a 200 of that operation, or an error."),
    recorded_at: timeOfAnswer,
  }),
});

export const getRequest: Route = {
  operation: "get_request",
  summary: "Shows the recorded outcome of a write, for a caller that lost its answer.",
  description:
    "404 means that there is no record: the request has not arrived, its answer is not recorded, or the record " +
    "is too old. Repeat the request.",
  method: "GET",
  path: "/v1/requests/{request_id}",
  isWrite: false,
  schema: () => input,
  answer: () => answer,
  resources: () => ["request"],
};
