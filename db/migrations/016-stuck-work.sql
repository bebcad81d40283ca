-- One party's rows may be such that its work fails. It alone waits, and is named.

-- A trigger and not a check: a check would refuse the whole table when a dump is restored on a
-- server that does not know one of the zones. pg_restore creates triggers after the rows.
create function core.check_time_zone() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' or new.time_zone <> old.time_zone then
    perform now() at time zone new.time_zone;
  end if;
  return new;
exception when invalid_parameter_value then
  raise exception 'time zone "%" not recognized', new.time_zone
    using errcode = 'invalid_parameter_value', constraint = 'time_zone_is_known';
end
$$;
comment on function core.check_time_zone() is 'Trigger: the server knows a new time zone.';

create trigger time_zone_is_known
before insert or update of time_zone on core.party
for each row execute function core.check_time_zone();
alter table core.party drop constraint time_zone_is_known;

create table core.stuck_work (
  tenant_id  int          not null,
  party_id   int          not null,
  work       text         not null,
  subject    text         not null,
  reason     text         not null,
  since      timestamptz  not null,
  tried_at   timestamptz  not null,
  primary key (tenant_id, party_id, work, subject),
  foreign key (tenant_id, party_id) references core.party,
  constraint work_is_known check (
    work in ('events', 'locks', 'expiry', 'mint', 'statement', 'webhook')),
  constraint subject_is_at_most_64_characters check (length(subject) <= 64),
  constraint reason_is_at_most_500_characters check (length(reason) <= 500)
);
comment on table core.stuck_work is
  'Work that fails because of the rows of one party. It is tried again and again; nothing else '
  'waits for it. A row counts while tried_at is recent, see the view stuck_work of the schema '
  'rules.';
comment on column core.stuck_work.work is
  'events: the party''s events get no positions, and its business days do not close.';
comment on column core.stuck_work.subject is 'External ID, or date, of what fails.';
comment on column core.stuck_work.since is 'When it first failed.';
create index stuck_work_by_kind on core.stuck_work (work, tried_at);

-- The events of a party that is stuck are numbers that are missing until it no longer is. So the
-- sequencer goes on, and later takes them like events that were committed late.
alter table core.event_gap
  alter column drawn_before drop not null,
  add column tenant_id int,
  add column party_id int,
  add constraint gap_waits_for_a_transaction_or_a_party check (
    (drawn_before is null) = (tenant_id is not null)
    and (tenant_id is null) = (party_id is null)),
  add foreign key (tenant_id, party_id) references core.party;
comment on table core.event_gap is
  'Event numbers that were drawn and are in no feed or business day yet: their transactions commit '
  'late or were rolled back, or their party is stuck.';
comment on column core.event_gap.drawn_before is
  'A transaction with a lower ID drew the number. Once all of those have ended, a number that is '
  'still missing was rolled back. Null: the event is visible, and waits for its party.';
create index event_waits_for_its_party on core.event_gap (tenant_id, party_id, event_seq)
where party_id is not null;

drop trigger event_gap_is_immutable on core.event_gap;
create function core.check_gap_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.event_seq <> old.event_seq or old.drawn_before is null or new.drawn_before is not null then
    raise exception 'a missing event number may only begin to wait for its party'
      using errcode = 'check_violation', constraint = 'event_gap_is_immutable';
  end if;
  return new;
end
$$;
comment on function core.check_gap_change() is
  'Trigger: a missing event number may only begin to wait for its party.';
create trigger gap_change_is_checked before update on core.event_gap
for each row execute function core.check_gap_change();
create trigger event_gap_is_kept before truncate on core.event_gap
for each statement execute function core.refuse_change();
