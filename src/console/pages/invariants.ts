import type { Database } from "../../database/types.ts";
import type { Outcome, Page } from "../page.ts";
import { isTimeout } from "../perform.ts";

// A check reads whole tables. What is left out is due first the next time.
const checkAllWithinMs = 60_000;

/** Those that were checked longest ago come first. */
async function checkAll(own: Database): Promise<Outcome> {
  const list = "select invariant from rules.list_invariants()";
  const all = await own.rows<{ invariant: string }>(list, []);
  const until = performance.now() + checkAllWithinMs;
  const broken: string[] = [];
  const late: string[] = [];
  let checked = 0;
  for (const { invariant } of all) {
    if (performance.now() > until) break;
    const check = "select example from rules.check_invariant($1)";
    try {
      const [result] = await own.rows<{ example: string | null }>(check, [invariant]);
      checked += 1;
      if (result!.example !== null) broken.push(invariant);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      late.push(invariant);
    }
  }
  const found = [
    `${checked} of ${all.length} checked, ${broken.length} broken.`,
    ...(late.length === 0 ? [] : [`Given up after 10 s: ${late.join(", ")}. "coupon check" has no such limit.`]),
    ...(checked + late.length === all.length ? [] : ["The others did not begin within a minute: check again."]),
  ].join(" ");
  return broken.length + late.length === 0 ? { error: null, found } : { error: found };
}

export const invariants: Page = {
  path: "/invariants",
  title: "Invariants",
  linkedFrom: "broken_invariants",
  isInMenu: true,
  blocks: [
    {
      title: "What the last checks found",
      as: "table",
      note: "The description says what breaks it. The worker checks all of them every night.",
      sql: `
select broken_rows, invariant, example, checked_at, description
from report.list_invariants()
order by broken_rows desc nulls last, invariant`,
    },
  ],
  actions: [{ name: "check", label: "Check all now", call: checkAll, isWithoutReason: true }],
};

export const invariant: Page = {
  path: "/invariants/:invariant",
  title: "Invariant",
  blocks: [
    {
      title: "What the last check found",
      as: "facts",
      sql: `
select broken_rows, example, checked_at, description
from report.list_invariants()
where invariant = :invariant`,
    },
  ],
  actions: [{ name: "check", label: "Check now", call: "rules.check_invariant(:invariant)", isWithoutReason: true }],
};
