// Compares the rows that a run leaves in the database with those that the model expects.
import type { Database } from "../../src/database/types.ts";
import { statusOf, type Coupon } from "./coupon.ts";
import { kindOf, type Setup } from "./kinds.ts";
import { toDecimal } from "./discount.ts";

// The number of the latest event. Later events have higher numbers.
export async function lastEvent(owner: Database): Promise<string> {
  const [row] = await owner.rows<{ last: string }>("select last_value as last from core.event_seq");
  return row!.last;
}

// Compares coupons, redemptions, ledger entries and events of the run, each as lines of text.
export async function compareRows(
  owner: Database,
  setup: Setup,
  coupons: Coupon[],
  since: string,
): Promise<string | null> {
  const [rows] = await owner.rows<{ statuses: string[]; redemptions: string[]; entries: string[]; events: string[] }>(
    `with coupon as materialized (
       select c.tenant_id, c.coupon_id, rules.format_id('cpn', c.coupon_id) as id, c.status
       from unnest($1::text[]) u (id) join core.tenant t on t.external_id = $3
       join core.coupon c on c.tenant_id = t.tenant_id and c.coupon_id = rules.parse_id('cpn', u.id)),
     redemption as materialized (
       select r.* from coupon c join core.redemption r on r.tenant_id = c.tenant_id and r.coupon_id = c.coupon_id)
     select
       array(select c.id || ' ' || c.status from coupon c order by 1) as statuses,
       array(select concat_ws(' ', v.redemption, v.coupon, v.status, v.merchant, v.lock_request_id, v.discount_amount)
             from redemption r
             join report.redemption v on v.tenant_id = r.tenant_id and v.redemption_key = r.redemption_id
             order by 1) as redemptions,
       array(select concat_ws(' ', l.entry_type, l.redemption, l.coupon, l.merchant, l.distributor,
                             l.discount_amount, l.currency)
             from report.ledger l
             where l.tenant_id = (select c.tenant_id from coupon c limit 1) and l.entry_key = any (array(
               select r.redemption_id from redemption r union all
               select x.reversal_id
               from redemption r
               join core.reversal x on x.tenant_id = r.tenant_id and x.redemption_id = r.redemption_id))
             order by 1) as entries,
       array(select concat_ws(' ', c.id, e.event_type, x.redemption)
             from rules.event e join coupon c on c.tenant_id = e.tenant_id and c.coupon_id = e.coupon_id
             join report.event x on x.event_seq = e.event_seq
             where e.event_seq > $2 order by e.event_seq) as events`,
    [coupons.map(({ id }) => id), since, setup.tenant],
  );
  const { redemptions, entries } = expectRows(setup, coupons);
  // The stored status of an unreleased coupon differs from its effective status.
  const stored = (coupon: Coupon) =>
    coupon.isReleased || !["CREATED", "EXPIRED"].includes(statusOf(coupon)) ? statusOf(coupon) : "ISSUED";
  return (
    differ(
      "coupons",
      coupons.map((coupon) => `${coupon.id} ${stored(coupon)}`),
      rows!.statuses,
    ) ??
    differ("redemptions", redemptions, rows!.redemptions) ??
    differ("ledger entries", entries, rows!.entries) ??
    coupons.map((coupon) => differEvents(coupon, rows!.events)).find((problem) => problem !== null) ??
    null
  );
}

function expectRows(setup: Setup, coupons: Coupon[]): { redemptions: string[]; entries: string[] } {
  const redemptions: string[] = [];
  const entries: string[] = [];
  for (const { id, kind, redemptions: all } of coupons) {
    const { currency } = kindOf(kind);
    for (const { id: redemption, status, isPastEnd, merchant, lockId, minor } of all) {
      redemptions.push(
        [
          redemption,
          id,
          status === "LOCKED" && isPastEnd ? "LAPSED" : status,
          merchant,
          lockId,
          toDecimal(minor, currency),
        ].join(" "),
      );
      const entry = (type: string, amount: number) =>
        entries.push(
          [type, redemption, id, merchant, setup.distributor, toDecimal(amount, currency), currency].join(" "),
        );
      if (status === "REDEEMED" || status === "REVERSED") entry("REDEMPTION", minor);
      if (status === "REVERSED") entry("REVERSAL", -minor);
    }
  }
  return { redemptions, entries };
}

function differ(what: string, expected: string[], given: string[]): string | null {
  const [left, right] = [expected.toSorted().join("\n"), given.toSorted().join("\n")];
  return left === right ? null : `${what}: expected\n${left}\ngot\n${right}`;
}

// Compares the order too. An uncertain event may be missing.
export function differEvents({ id, events }: Coupon, all: string[]): string | null {
  const given = all.filter((event) => event.startsWith(`${id} `));
  const expected = events.map(({ type, redemption, isCertain }) => ({
    line: [id, type, ...(redemption === null ? [] : [redemption])].join(" "),
    isCertain,
  }));
  const fits = (at: number, from: number): boolean => {
    const next = expected[at];
    if (next === undefined) return from === given.length;
    return (given[from] === next.line && fits(at + 1, from + 1)) || (!next.isCertain && fits(at + 1, from));
  };
  const lines = expected.map(({ line, isCertain: must }) => `${line}${must ? "" : " perhaps"}`);
  return fits(0, 0) ? null : `events: expected\n${lines.join("\n")}\ngot\n${given.join("\n")}`;
}
