-- How far the expiry of a batch has come, and the coupons that end at another time than their batch.

alter table core.batch
  add column expired_through int not null default 0,
  add constraint expired_through_is_within_total check (expired_through between 0 and total_count);
comment on column core.batch.expired_through is 'Coupons up to this number were looked at by the expiry job after the batch''s valid_to.';
create index batch_is_expiring on core.batch (valid_to) where status = 'ALLOCATED' and expired_through < total_count;

create table core.coupon_extension (
  tenant_id  int          not null,
  coupon_id  uuid         not null,
  valid_to   timestamptz  not null,
  primary key (tenant_id, coupon_id),
  foreign key (tenant_id, coupon_id) references core.coupon
);
comment on table core.coupon_extension is 'Coupons whose valid_to was patched: the expiry job looks for them one by one. Kept by a trigger.';
create index coupon_extension_by_end on core.coupon_extension (valid_to);

create function core.record_extension() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
  values (new.tenant_id, new.coupon_id, new.valid_to)
  on conflict (tenant_id, coupon_id) do update set valid_to = excluded.valid_to;
  return null;
end
$$;
comment on function core.record_extension() is 'Trigger: a patched valid_to is noted for the expiry job.';
create trigger extension_is_noted
after update of valid_to on core.coupon
for each row when (new.valid_to <> old.valid_to) execute function core.record_extension();
comment on column core.batch.body_hash is 'As core.request.body_hash: tells an equal retry when the request record is gone.';
comment on column core.batch.mint_holder is 'Who has the lease: a random id that a worker draws for each slice.';
comment on column core.feed.last_position is 'Of the newest event; 0: none yet.';
comment on column core.ledger_book.open_on is 'The first business day that is not closed.';
comment on column core.webhook.sealed_previous_secret is 'Signs beside the new one for 24 h after rotated_at.';
comment on column core.webhook.holder is 'Who has the lease: a random id of a worker.';
