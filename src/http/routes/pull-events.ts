import { z } from "zod";
import { limit, printable } from "../fields.ts";
import type { Route } from "../route.ts";

// The database decides whether a cursor belongs to the caller's feed.
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
