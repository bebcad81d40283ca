-- Webhook deliveries: a row for each event that a subscriber has not accepted yet, and a log of all
-- attempts.

create table core.delivery (
  tenant_id        int          not null,
  party_id         int          not null,
  event_id         uuid         not null,
  event_seq        bigint       not null,
  attempt_count    int          not null default 0,
  next_attempt_at  timestamptz  not null,
  parked_at        timestamptz,
  last_error       text,
  primary key (tenant_id, party_id, event_id),
  foreign key (tenant_id, party_id) references core.webhook,
  foreign key (tenant_id, event_id) references core.event (tenant_id, event_id),
  constraint attempt_count_is_0_to_10 check (attempt_count between 0 and 10)
) with (fillfactor = 80);
comment on table core.delivery is
  'Events that a subscriber has not accepted yet; the row is deleted when it does. After ten '
  'attempts the delivery is parked until replayed.';
create index delivery_is_due
on core.delivery (tenant_id, party_id, next_attempt_at, event_seq)
where parked_at is null;

create table core.delivery_attempt (
  attempt_id    bigint       primary key generated always as identity,
  tenant_id     int          not null,
  party_id      int          not null,
  event_id      uuid         not null,
  attempt       int          not null,
  http_status   int,
  error         text,
  duration_ms   int          not null,
  attempted_at  timestamptz  not null
);
comment on table core.delivery_attempt is 'Log of delivery attempts of the last 30 days.';
comment on column core.delivery_attempt.http_status is 'Null: no answer, and error says why.';
create index delivery_attempt_of_party on core.delivery_attempt (tenant_id, party_id, attempted_at);
create index delivery_attempt_by_age on core.delivery_attempt using brin (attempted_at);
