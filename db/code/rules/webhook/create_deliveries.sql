-- Creates a delivery for each event that a webhook takes. All deliveries of a step are due at the
-- same moment, so they are sent in the order of their event numbers.
--
-- Redemptions, reversals, and events of batches and days go first; expiries and voids go behind.
-- Events of one coupon keep their order: an event joins the one that waits for the same coupon, and
-- within a step, the first event of a coupon decides for the others. A coupon whose expiry waits
-- may have been extended and redeemed since; one whose redemption waits may have been reversed,
-- issued again and expired.
create or replace function rules.create_deliveries(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  insert into core.delivery
    (tenant_id, party_id, event_id, event_seq, coupon_id, next_attempt_at, is_behind, is_expanded)
  select e.tenant_id, e.party_id, e.event_id, e.event_seq, e.coupon_id, statement_timestamp(),
         coalesce(
           rules.find_place_of_coupon(e.tenant_id, e.party_id, e.coupon_id),
           first_value(e.event_type in ('coupon.expired', 'coupon.voided')) over (
             partition by e.tenant_id, e.party_id, coalesce(e.coupon_id, e.event_id)
             order by e.event_seq)),
         w.expand
  from unnest(p_events) e
  join core.webhook w
    on w.tenant_id = e.tenant_id and w.party_id = e.party_id and w.disabled_at is null
  where rules.is_type_taken(w.event_types, e.event_type)
  on conflict do nothing;
end
$$;
