-- Has one row for each violation of an invariant, so it is normally empty. Constraints and triggers
-- enforce the invariants; this view finds violations even if triggers were switched off. Each
-- invariant is a view in rules/invariant, named after the rule that it checks. A test ensures that
-- the list below is complete. Leaves out tenants that have left for another cell: they lose their
-- rows here in steps. Reads every table: run it at night or in tests.
create or replace view report.invariants as
select i.invariant, t.external_id as tenant, i.subject
from (
  table rules.coupon_status_matches_redemptions
  union all table rules.consumed_coupon_stays_redeemed
  union all table rules.coupon_has_one_live_redemption
  union all table rules.redemption_has_coupon_and_merchant
  union all table rules.redemption_follows_its_template
  union all table rules.event_is_in_one_table
  union all table rules.event_is_for_the_right_party
  union all table rules.voided_coupon_has_voiding
  union all table rules.recalled_coupon_is_not_usable
  union all table rules.redemption_has_its_ledger_entries
  union all table rules.ledger_entry_has_its_redemption
  union all table rules.reversal_has_reversed_redemption
  union all table rules.expired_or_voided_coupon_has_its_event
  union all table rules.issued_coupon_will_expire
  union all table rules.voided_event_has_voided_coupon
  union all table rules.batch_has_the_coupons_it_counts
  union all table rules.batch_has_its_events
  union all table rules.used_coupon_is_released
  union all table rules.feed_positions_are_1_to_n
  union all table rules.event_has_one_position
  union all table rules.feed_keeps_the_order_of_each_coupon
  union all table rules.sequenced_event_is_in_its_feed
  union all table rules.feed_counts_its_events
  union all table rules.sequenced_ledger_entry_is_posted
  union all table rules.entry_is_posted_once
  union all table rules.posting_has_the_distributor_of_its_entry
  union all table rules.posting_numbers_are_1_to_n
  union all table rules.posting_keeps_the_times_of_its_entries
  union all table rules.merchant_lists_its_changes
  union all table rules.merchant_pages_follow_each_other
  union all table rules.statement_counts_its_postings
  union all table rules.summary_matches_the_ledger
  union all table rules.day_sums_match_the_ledger
  union all table rules.days_before_the_open_day_are_closed
  union all table rules.closed_days_follow_each_other
  union all table rules.open_day_and_later_days_are_not_closed
  union all table rules.ready_statement_has_its_event
  union all table rules.recorded_redemption_exists
  union all table rules.delivery_is_of_an_event
  union all table rules.delivery_is_parked_after_10_attempts
  union all table rules.deliveries_of_a_coupon_wait_together) i
left join core.tenant t using (tenant_id)
where t.left_at is null;
comment on view report.invariants is
  'Violated invariants: normally no rows. Leaves out tenants that have left for another cell. '
  'Reads every table; run it at night or in tests.';
comment on column report.invariants.invariant is
  'The violated invariant. The view of this name in schema rules checks it.';
comment on column report.invariants.subject is
  'Where: an ID, or a distributor''s ID and a business date. External IDs.';
comment on column report.invariants.tenant is
  'External ID, ten_…. Null: the violation belongs to no tenant.';
