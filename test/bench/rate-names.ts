// The contenders by name, and what a round of one measures.
import type { Round } from "./contenders.ts";
import type { Costs } from "./measure.ts";

export const fixedPerSecond = 500;
// -8, -1: the number of connections. Without it: 64, of the function 32.
export const rateNames = [
  "floor",
  "floor-8",
  "floor-1",
  "function",
  "function-1",
  "http",
  "http-8",
  "http-1",
  "fixed",
  "http-lock-confirm",
  "http-query",
  "http-after-checkpoint",
] as const;
export type RateName = (typeof rateNames)[number];
// feedSeconds: from the end of the load until its last event was in the feed.
export type Measurement = Round & { costs: Costs; feedSeconds: number };
export type Measurements = Map<RateName, Measurement[]>;
