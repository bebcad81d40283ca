// What the model knows of the service, and how it judges a call by it.
import type { Call, Expected, Recorded } from "./call.ts";
import type { Coupon } from "./coupon.ts";
import type { Setup } from "./kinds.ts";

// records: the answered calls that the service records.
export type Model = { setup: Setup; coupons: Coupon[]; records: Recorded[]; mistyped: string };
export type Judge = (model: Model, call: Call) => Expected;
