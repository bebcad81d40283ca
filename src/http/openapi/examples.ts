// Requests and answers that were recorded from a run of the service. `npm run openapi` writes examples.json.
import { readFileSync } from "node:fs";
import type { Variant } from "../../gate/gate.ts";

type Example = { request: Record<string, unknown> | null; answer: unknown };
export type Examples = {
  operations: Record<Variant, Record<string, Example>>;
  /** By error code. A NOT_FOUND has one for each resource: NOT_FOUND.coupon. */
  errors: Record<string, unknown>;
  /** By event type. */
  events: Record<string, unknown>;
};

const examplesFile = new URL("examples.json", import.meta.url);

export function readExamples(): Examples {
  return JSON.parse(readFileSync(examplesFile, "utf8")) as Examples;
}
