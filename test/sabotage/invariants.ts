// Conditions of the views in db/code/rules/invariant. Each is needed to find a corruption of test/db/corruptions.ts.
import { edit, type Sabotage } from "./sabotage.ts";

// By invariant: what it must find, its condition, and what a slip leaves of it.
const conditions: Record<string, [finds: string, from: string, to: string][]> = {
  "summary matches the ledger": [
    ["a second line of a merchant", "having sum(d.lines) <> 1\n    or", "having"],
    ["a wrong number of redemptions", "or (sum(d.redemptions), ", "or (0::bigint, "],
    ["a wrong sum of redemptions", "sum(d.redeemed_minor), sum(", "0::numeric, sum("],
    ["a wrong number of reversals", "sum(d.reversals), ", "0::bigint, "],
    ["a wrong sum of reversals", "sum(d.reversed_minor))", "0::numeric)"],
  ],
  "coupon status matches redemptions": [
    ["a REDEEMED coupon with a lock", "r.status = 'LOCKED' or r.status is null and", "r.status is null and"],
    ["a REDEEMED coupon that was reissued", "\n      and t.after_reversal = 'consumed'", ""],
    ["a REDEEMED coupon of a cancelled lock", "\n      and x.status = 'REVERSED'", ""],
    ["a LOCKED coupon with a redemption", "r.status is distinct from 'LOCKED'", "r.status is null"],
  ],
  "redemption has coupon and merchant": [
    ["an unknown coupon", "c.coupon_id is null or ", ""],
    ["a coupon of another tenant", "c.tenant_id = r.tenant_id and ", ""],
  ],
  "batch has the coupons it counts": [["a missing coupon", "c.coupons <> b.minted_count\n   or ", ""]],
  "event is for the right party": [
    [
      "a coupon event for the maker",
      "else e.party_id = b.distributor_id",
      "else e.party_id in (b.maker_id, b.distributor_id)",
    ],
    ["an unknown party of a statement", "then p.party_id is not null", "then true"],
  ],
  "used coupon is released": [
    ["a LOCKED coupon", "'LOCKED', ", ""],
    ["a REDEEMED coupon", "'REDEEMED', ", ""],
    ["an EXPIRED coupon", ", 'EXPIRED'", ""],
  ],
  "posting numbers are 1 to n": [
    ["a missing first number", "min(p.number) <> 1 or ", ""],
    ["a missing number after the first", " or max(p.number) <> count(*)", ""],
  ],
  "reversal has reversed redemption": [["a missing redemption", "is distinct from 'REVERSED'", "<> 'REVERSED'"]],
  "feed positions are 1 to n": [
    ["a position beyond the last", "\n   or x.last_position > f.last_position", ""],
    [
      "a position missing in the middle",
      "\n   or coalesce(x.last_position - x.first_position + 1, 0) - coalesce(x.events, 0)\n" +
        "        not between 0 and f.skipped_count",
      "",
    ],
    ["a position missing at the end", "(f.skipped_count = 0 and x.last_position <> f.last_position)\n   or ", ""],
  ],
};

export const invariantGuards: Sabotage[] = Object.entries(conditions).flatMap(([invariant, slips]) =>
  slips.map(([finds, from, to]) => ({
    name: `"${invariant}" finds ${finds}`,
    edits: [edit(`db/code/rules/invariant/${invariant.replaceAll(" ", "_")}.sql`, from, to)],
    tests: ["test/db/invariants.test.ts"],
  })),
);
