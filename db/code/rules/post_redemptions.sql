-- The money of redemptions, redeemed when they were granted: their ledger entries, and the events that tell of them.
create or replace function rules.post_redemptions(p_tenant_id int, p_terms core.grant_terms[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  with told as (
    insert into core.event
      (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
    select p_tenant_id, t.redemption_id, 'coupon.redeemed', t.distributor_id, t.coupon_id, t.granted_at,
           clock_timestamp()
    from unnest(p_terms) t)
  insert into core.ledger_entry
    (tenant_id, entry_id, entry_type, redemption_id, distributor_id, amount_minor, currency, occurred_at, recorded_at)
  select p_tenant_id, t.redemption_id, 'REDEMPTION', t.redemption_id, t.distributor_id, t.discount_minor,
         t.currency, t.granted_at, clock_timestamp()
  from unnest(p_terms) t;
end
$$;
comment on function rules.post_redemptions(int, core.grant_terms[]) is 'Ledger entries and events of completed redemptions.';
