-- The composite types that functions pass to each other: a call and its answer.

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
  'A call of an operation: ordinal is its place in its group. caller_id: the party in Variant B, '
  '0 in A; null: the credential is unknown or revoked. body_hash null: a read.';

create type core.answer as (
  http_status  int,
  code         text,
  resource     text,
  body         text
);
comment on type core.answer is
  'The answer of an operation. code: the error code, null for a success. resource: what '
  'NOT_FOUND is about, or one that get_request shows. A null answer hands the call back: it would '
  'have to wait for a lock, and nothing was written.';

create type core.outcome as (
  ordinal    int,
  answer     core.answer,
  is_replay  boolean
);
comment on type core.outcome is 'The answer to a call of a group. ordinal: the place of the call.';
