-- What reports read instead of the ledger: sums of each closed day by store and by batch, written
-- with its summary, and the batch of each voiding. Nothing is added to a redemption.

create table core.store_line (
  tenant_id         int     not null,
  distributor_id    int     not null,
  business_date     date    not null,
  number            int     not null,
  merchant_id       int     not null,
  store             core.place,
  currency          text    not null references core.currency,
  redemption_count  int     not null,
  redemption_minor  bigint  not null,
  reversal_count    int     not null,
  reversal_minor    bigint  not null,
  primary key (tenant_id, distributor_id, business_date, number),
  foreign key (tenant_id, distributor_id, business_date) references core.statement,
  foreign key (tenant_id, merchant_id) references core.merchant,
  constraint store_line_has_entries check (redemption_count + reversal_count > 0)
);
comment on table core.store_line is
  'Sums of a closed day for reports, written with its summary: one line per merchant, store and '
  'currency.';
comment on column core.store_line.store is
  'As the till sent it; a reversal counts for the store of its redemption. Null: not sent.';

create table core.batch_line (
  tenant_id         int     not null,
  distributor_id    int     not null,
  business_date     date    not null,
  batch_id          int     not null,
  redemption_count  int     not null,
  redemption_minor  bigint  not null,
  reversal_count    int     not null,
  reversal_minor    bigint  not null,
  primary key (tenant_id, distributor_id, business_date, batch_id),
  foreign key (tenant_id, distributor_id, business_date) references core.statement,
  foreign key (tenant_id, batch_id) references core.batch,
  constraint batch_line_has_entries check (redemption_count + reversal_count > 0)
);
comment on table core.batch_line is
  'Sums of a closed day for reports, written with its summary: one line per batch, in the currency '
  'of its template.';

create trigger store_line_is_immutable before update or delete or truncate on core.store_line
for each statement execute function core.refuse_change();
create trigger batch_line_is_immutable before update or delete or truncate on core.batch_line
for each statement execute function core.refuse_change();

-- The days that were summed up before this migration. No release made such days, so they are few.
create temporary table day_entry on commit drop as
select p.tenant_id, p.distributor_id, p.business_date, r.merchant_id, r.store::text, l.currency,
       c.batch_id, l.entry_type::text, l.amount_minor
from core.posting_page p
cross join lateral unnest(p.event_seqs) x (event_seq)
join core.ledger_entry l on l.event_seq = x.event_seq
left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
join core.redemption r
  on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
join core.coupon c on c.tenant_id = l.tenant_id and c.coupon_id = l.coupon_id
where (p.tenant_id, p.distributor_id, p.business_date) in (
  select s.tenant_id, s.distributor_id, s.business_date from core.statement_line s);
insert into core.store_line
select e.tenant_id, e.distributor_id, e.business_date,
       row_number() over (
         partition by e.tenant_id, e.distributor_id, e.business_date
         order by e.merchant_id, e.store, e.currency),
       e.merchant_id, e.store, e.currency,
       count(*) filter (where e.entry_type = 'REDEMPTION'),
       coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REDEMPTION'), 0),
       count(*) filter (where e.entry_type = 'REVERSAL'),
       coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REVERSAL'), 0)
from day_entry e
group by e.tenant_id, e.distributor_id, e.business_date, e.merchant_id, e.store, e.currency;
insert into core.batch_line
select e.tenant_id, e.distributor_id, e.business_date, e.batch_id,
       count(*) filter (where e.entry_type = 'REDEMPTION'),
       coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REDEMPTION'), 0),
       count(*) filter (where e.entry_type = 'REVERSAL'),
       coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REVERSAL'), 0)
from day_entry e
group by e.tenant_id, e.distributor_id, e.business_date, e.batch_id;

-- report.batch counts expired coupons of a valid batch by this list. They used to leave it.
comment on table core.coupon_extension is
  'Coupons whose valid_to was patched, until they and their batch have ended. The expiry job '
  'checks them one by one. A trigger maintains this table.';
insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
select c.tenant_id, c.coupon_id, c.valid_to
from core.batch b
join core.coupon c on c.tenant_id = b.tenant_id and c.batch_id = b.batch_id
where b.valid_to > now() and c.valid_to <= now()
on conflict do nothing;

alter table core.voiding add column batch_id int;
comment on column core.voiding.batch_id is
  'The batch of the coupon, so that report.batch counts without reading coupons.';
alter table core.voiding disable trigger voiding_is_kept;
update core.voiding v
set batch_id = c.batch_id
from core.coupon c
where c.tenant_id = v.tenant_id and c.coupon_id = v.coupon_id;
alter table core.voiding enable trigger voiding_is_kept;
alter table core.voiding alter column batch_id set not null;

create or replace function core.check_voiding() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id
      and c.coupon_id = new.coupon_id
      and c.batch_id = new.batch_id
      and c.status = 'VOIDED')
  then
    raise exception 'coupon % has a voiding but is not VOIDED, or is of another batch',
      new.coupon_id
      using errcode = 'check_violation', constraint = 'voiding_agrees_with_its_coupon';
  elsif new.merchant_id is not null and not exists (
    select
    from core.merchant m
    where m.tenant_id = new.tenant_id and m.merchant_id = new.merchant_id)
  then
    raise exception 'the merchant in the voiding of coupon % does not exist', new.coupon_id
      using errcode = 'foreign_key_violation', constraint = 'voiding_is_at_a_merchant';
  end if;
  return null;
end
$$;
comment on function core.check_voiding() is
  'Deferred trigger: a coupon with a voiding is VOIDED and of the voiding''s batch, and the '
  'merchant of the voiding exists.';
