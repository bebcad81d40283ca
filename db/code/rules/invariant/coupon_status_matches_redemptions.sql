create or replace view rules.coupon_status_matches_redemptions as
select 'coupon status matches redemptions' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.coupon c
left join core.redemption r
  on r.tenant_id = c.tenant_id and r.coupon_id = c.coupon_id and r.status in ('LOCKED', 'REDEEMED')
where case c.status
  when 'LOCKED' then r.status is distinct from 'LOCKED'
  when 'REDEEMED' then r.status = 'LOCKED' or r.status is null and not exists (
    select
    from core.redemption x
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
    where x.tenant_id = c.tenant_id
      and x.coupon_id = c.coupon_id
      and x.status = 'REVERSED'
      and t.after_reversal = 'consumed')
  else r.status is not null
end;
comment on view rules.coupon_status_matches_redemptions is
  'LOCKED: the coupon has a live lock. REDEEMED: its redemption is completed, or reversed under '
  'a template that does not reissue coupons. Any other status: it has no live redemption.';
