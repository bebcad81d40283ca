create or replace function admin.extend_coupon(
  p_tenant text, p_coupon text, p_valid_to timestamptz, p_reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_coupon  core.coupon := rules.hold_coupon_for_patch(p_tenant, p_coupon);
begin
  if p_valid_to is null then
    raise exception 'an extension needs a valid_to' using errcode = 'CP400';
  elsif (
    -- the lock keeps a recall out that would pass this coupon meanwhile
    select b.recalled_at is not null
    from core.batch b
    where b.tenant_id = v_coupon.tenant_id and b.batch_id = v_coupon.batch_id
    for share)
  then
    raise exception 'coupon % is of a recalled batch and cannot be extended', p_coupon
      using errcode = 'CP409';
  elsif v_coupon.status not in ('ISSUED', 'LOCKED', 'EXPIRED') then
    raise exception 'coupon % is % and cannot be extended', p_coupon, v_coupon.status
      using errcode = 'CP409';
  elsif p_valid_to <= v_coupon.valid_from then
    raise exception 'valid_to must be later than the coupon''s valid_from, %',
      rules.format_time(v_coupon.valid_from) using errcode = 'CP400';
  elsif p_valid_to >= '10000-01-01 00:00+00' then
    raise exception 'valid_to must be before the year 10000' using errcode = 'CP400';
  end if;
  update core.coupon c
  set valid_to = p_valid_to,
      status = case
        when c.status = 'EXPIRED' and p_valid_to > clock_timestamp() then 'ISSUED'
        else c.status
      end
  where c.tenant_id = v_coupon.tenant_id and c.coupon_id = v_coupon.coupon_id;
  perform rules.write_audit(v_coupon.tenant_id, 'extend_coupon', p_coupon, v_reason,
    jsonb_build_object(
      'status', v_coupon.status, 'valid_to_before', v_coupon.valid_to, 'valid_to', p_valid_to));
end
$$;
comment on function admin.extend_coupon(text, text, timestamptz, text) is
  'Changes valid_to of a coupon to an earlier or later time. An EXPIRED coupon becomes ISSUED '
  'again if the new valid_to is in the future. When it expires again, it gets a second '
  'coupon.expired event. Refuses a coupon of a recalled batch.';
