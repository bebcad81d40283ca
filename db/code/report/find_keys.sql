-- Returns the keys of everything that happened under an ID: its redemptions (and locks), their
-- reversals and, for a coupon, its other events. A redemption and its ledger entry have the same
-- key, and so have a reversal and its entry. The entry is also the event. This is security definer,
-- because readers of reports call it and may read no table.
create or replace function report.find_keys(p_id text) returns uuid[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_prefix       text := substring(p_id from '^(cpn|red|rvs|led|evt)_');
  v_key          uuid := rules.parse_id(v_prefix, p_id);
  v_redemptions  uuid[];
begin
  if v_prefix = 'cpn' then
    v_redemptions := array(
      select r.redemption_id from core.redemption r where r.coupon_id = v_key);
  else
    v_redemptions := array(
      select v.redemption_id from core.reversal v where v.reversal_id = v_key) || v_key;
  end if;
  return v_redemptions
    || array(
      select v.reversal_id from core.reversal v where v.redemption_id = any (v_redemptions))
    || array(
      select e.event_id
      from core.event e
      where e.coupon_id = v_key);
end
$$;
comment on function report.find_keys(text) is
  'The keys of the redemptions, reversals and events under an ID: cpn_…, red_…, rvs_…, led_… or '
  'evt_….';
