-- Whether a program needs this version of the master key: a secret is sealed with it, or a coupon
-- with one of its codes can still be confirmed. A lock may end 7 days after the coupon's validity.
create or replace function rules.is_key_in_use(p_version text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select exists (
      select from core.batch b
      where b.key_version = p_version and b.valid_to > now() - interval '7 days')
    or exists (
      select
      from core.coupon_extension x
      join core.coupon c on c.tenant_id = x.tenant_id and c.coupon_id = x.coupon_id
      join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
      where b.key_version = p_version and x.valid_to > now() - interval '7 days')
    or exists (
      select from core.credential c
      where c.revoked_at is null
        and substring(c.sealed_secret from 1 for 1) = convert_to(p_version, 'UTF8'))
    or exists (
      select from core.webhook w
      where substring(w.sealed_secret from 1 for 1) = convert_to(p_version, 'UTF8'))
    or exists (
      select from core.replaced_secret s
      where s.replaced_at > now() - interval '24 hours'
        and substring(s.sealed_secret from 1 for 1) = convert_to(p_version, 'UTF8'));
end;
