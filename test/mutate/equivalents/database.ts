// Mutants of db/ that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inDatabase: Equivalent[] = [
  {
    file: "db/code/admin/void_coupon.sql",
    before: "v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'A', v_now);",
    after: "v_coupon.status, v_coupon.valid_to, v_lock.lock_expires_at, true, 'x', v_now);",
    reason: "The variant matters only for a coupon that is not released, and the argument before it says released.",
  },
  {
    file: "db/code/rules/redemption/decide_redemptions.sql",
    before: "if (v_case.coupon).status = 'LOCKED' then",
    after: "if true then",
    reason: "Only a LOCKED coupon has a live lock. The condition saves a read for all other coupons.",
  },
  {
    file: "db/migrations/009-consistency.sql",
    before: "or (v_is.status = 'LOCKED' and v_is.entered is null))",
    after: "or (v_is.coupon_status = 'LOCKED' and v_is.entered is null))",
    reason: "The condition around it demands that both are equal.",
  },
];
