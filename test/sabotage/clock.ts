// The clock of each decision by time: clock_timestamp() after the wait for the row, not now(), the begin of the
// transaction.
import { edit, type Sabotage } from "./sabotage.ts";

// context: the text around clock_timestamp(), so that it occurs once.
const clock = (file: string, context: [before: string, after: string], test: string): Sabotage => ({
  name: `clock after a wait: ${file}`,
  edits: [edit(`db/code/${file}.sql`, context.join("clock_timestamp()"), context.join("now()"))],
  tests: [`test/db/races/${test}.test.ts`],
});

const assigned: [string, string] = ["  v_now := ", ";"];
const declared: [string, string] = ["v_now     timestamptz := ", ";"];

export const clockGuards: Sabotage[] = [
  clock("rules/redemption/perform_redemptions", assigned, "clock"),
  clock("rules/coupon/free_coupon", ["p_coupon.valid_to <= ", ";"], "clock"),
  clock("api/confirm", assigned, "clock"),
  clock("api/cancel", assigned, "clock"),
  clock("api/void", assigned, "clock"),
  clock("api/reverse", assigned, "clock-times"),
  clock("api/allocate_batch", assigned, "clock-times"),
  clock("api/query", ["v_now          timestamptz := ", ";"], "clock-jobs"),
  clock("api/create_batch", ["v_template.valid_to <= ", " then"], "clock-jobs"),
  clock("admin/release_lock", declared, "clock"),
  clock("admin/void_coupon", declared, "clock"),
  clock("admin/void_batch", ["c.valid_to > ", "\n"], "clock-jobs"),
  clock("admin/extend_coupon", ["p_valid_to > ", " then"], "clock-jobs"),
  clock("rules/redemption/hold_expired_locks", ["v_due      timestamptz := ", ";"], "clock-jobs"),
  clock("jobs/expire_coupons", ["v_due      timestamptz := ", ";"], "clock-jobs"),
  clock("rules/coupon/expire_extended", ["v_due     timestamptz := ", ";"], "clock-jobs"),
  clock("jobs/close_days", ["v_now   timestamptz := ", ";"], "clock-jobs"),
  clock("jobs/claim_batch", ["mint_lease_until = ", " + interval"], "clock-times"),
  clock("jobs/mint_chunk", assigned, "clock-times"),
  clock("jobs/claim_deliveries", ["lease_until = ", " + interval"], "clock-times"),
  clock("jobs/finish_statement", assigned, "clock-times"),
];
