-- The composite types that operations pass to each other: a call, its answer, and what is decided in between.

create type core.call as (
  ordinal          int,
  tenant_id        int,
  variant          text,
  amount_unit      text,
  caller_id        int,
  credential_id    int,
  nonce            text,
  operation        text,
  request_id       text,
  idempotency_key  text,
  body_hash        bytea,
  may_wait         boolean,
  args             jsonb
);
comment on type core.call is
  'One call of an operation: its place in its group, and who calls. caller_id: the party in Variant B, 0 in A; null: nobody we know.';

create type core.answer as (
  http_status  int,
  body         text
);
comment on type core.answer is
  'What an operation says. http_status 0: it would have had to wait for a row; nothing was written.';

create type core.outcome as (
  ordinal    int,
  answer     core.answer,
  is_replay  boolean
);
comment on type core.outcome is 'The answer to a call of a group, by the place of the call.';

create type core.grant_terms as (
  redemption_id    uuid,
  coupon_id        uuid,
  merchant_id      int,
  distributor_id   int,
  lapsed_id        uuid,
  currency         text,
  decimals         int,
  discount_minor   bigint,
  order_minor      bigint,
  granted_at       timestamptz,
  lock_expires_at  timestamptz
);
comment on type core.grant_terms is
  'What a lock or redeem is granted, decided before anything is written. lapsed_id: an earlier lock, past its end.';

create type core.decision as (
  call     core.call,
  refusal  core.answer,
  terms    core.grant_terms
);
comment on type core.decision is 'What a lock or redeem of a group comes to: a refusal, or the terms of the grant.';
