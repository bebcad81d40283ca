import { z } from "zod";
import { limit, printable } from "../fields.ts";
import type { Route } from "../route.ts";

// The database checks the cursor's form and refuses one beyond the end of the caller's feed. It cannot recognise a
// cursor of another feed.
const input = z.strictObject({ cursor: printable(64).optional(), limit: limit.optional() });

export const pullEvents: Route = {
  operation: "pull_events",
  method: "GET",
  path: "/v1/events",
  query: ["cursor", "limit"],
  isWrite: false,
  hasOwnTransaction: true,
  reveals: "nothing",
  schema: () => input,
};
