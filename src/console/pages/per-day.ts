/** The days of the charts. `from`: the first one, in SQL. `isAlways`: also if there was no movement on any of them. */
type Days = { from?: string; isAlways?: true };

/** Redemptions and reversals of each business day, with 0 for a day without movements. */
export function perDay(view: string, condition: string, { from = "current_date - 29", isAlways }: Days = {}): string {
  // East of UTC, the newest business day begins before the date of the server.
  return `
with s as (
  select business_date, sum(redemption_count) as redemptions, sum(reversal_count) as reversals
  from ${view}
  where ${condition}
  group by business_date)
select d.day::date as business_date, coalesce(s.redemptions, 0) as redemptions,
       coalesce(s.reversals, 0) as reversals
from generate_series(
  ${from}, greatest(current_date, (select max(business_date) from s)), interval '1 day') d (day)
left join s on s.business_date = d.day::date${isAlways ? "" : "\nwhere exists (select from s)"}
order by business_date`;
}
