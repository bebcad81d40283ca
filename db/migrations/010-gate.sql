-- The records of the gate: answers, nonces, and cancellations that arrived before their lock. And
-- the audit log.

create domain core.final_status as smallint
  constraint outcome_is_final check (value in (200, 404, 409, 422));
comment on domain core.final_status is
  'The HTTP status of a final answer: a success, or a refusal that a retry cannot change.';

-- The cast refuses what is not JSON. (PostgreSQL 15 has no `is json`.)
create domain core.recorded_answer as text
  constraint answer_is_a_json_object check (json_typeof(value::json) = 'object');
comment on domain core.recorded_answer is 'The body of a recorded answer: text, to keep its bytes.';

create table core.request (
  tenant_id        int          not null,
  caller_id        int          not null,
  recorded_at      timestamptz  not null,
  http_status      core.final_status not null,
  body_hash        bytea        not null,
  request_id       core.client_key not null,
  idempotency_key  core.client_key,
  first_request_id core.client_key,
  operation        text         not null,
  response         core.recorded_answer not null,
  primary key (request_id, caller_id, tenant_id)
);
comment on table core.request is
  'The final answer to each write, replayed byte for byte. Pruned after 90 days.';
comment on column core.request.caller_id is 'The party in Variant B, 0 in A.';
comment on column core.request.body_hash is
  '64 bits of a keyed hash of the body''s values without request_id. Distinguishes an equal '
  'retry from another request with the same id.';
comment on column core.request.first_request_id is
  'Of a retry that was found by its idempotency-key: the request_id of the first call.';

create unique index idempotency_key_is_used_once
on core.request (idempotency_key, caller_id, tenant_id)
where idempotency_key is not null;

create unlogged table core.nonce (
  tenant_id      int          not null,
  credential_id  int          not null,
  nonce          text         not null,
  seen_at        timestamptz  not null,
  primary key (tenant_id, credential_id, nonce)
);
comment on table core.nonce is
  'Nonces of the last 11 minutes. Unlogged, so a crash empties it: the signed timestamp and '
  'core.request still protect against replays.';
create index nonce_by_age on core.nonce (seen_at);

create table core.lock_cancellation (
  tenant_id        int          not null,
  caller_id        int          not null,
  coupon_id        uuid         not null,
  lock_request_id  core.client_key not null,
  recorded_at      timestamptz  not null,
  primary key (tenant_id, coupon_id, caller_id, lock_request_id),
  foreign key (tenant_id, coupon_id) references core.coupon (tenant_id, coupon_id)
);
comment on table core.lock_cancellation is
  'Cancels that arrived before their lock. The late lock is refused.';

create table core.audit (
  audit_id     bigint       primary key generated always as identity,
  tenant_id    int,
  recorded_at  timestamptz  not null default clock_timestamp(),
  login        text         not null default session_user,
  client       text         not null default current_setting('application_name'),
  action       text         not null,
  target       text         not null,
  reason       text,
  details      jsonb        not null default '{}',
  foreign key (tenant_id) references core.tenant,
  constraint audit_reason_is_at_most_1000_characters check (length(reason) <= 1000)
);
comment on table core.audit is
  'Every patch, provisioning and export of codes: who, when, what and why.';
comment on column core.audit.login is 'The login role, not the role that it acted as.';
comment on column core.audit.details is 'The values before and after. Never a code or a secret.';

create trigger audit_is_immutable before update or delete or truncate on core.audit
for each statement execute function core.refuse_change();
create trigger request_is_final before update or truncate on core.request
for each statement execute function core.refuse_change();
create index request_by_age on core.request using brin (recorded_at)
with (pages_per_range = 32, autosummarize = on);
