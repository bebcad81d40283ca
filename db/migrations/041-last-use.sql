-- When a credential was last used, to the hour, so that operators find the ones that nobody needs.
alter table core.credential
  add column last_used_at timestamptz,
  add constraint last_used_at_is_a_full_hour
    check (mod(extract(epoch from last_used_at), 3600) = 0);
comment on column core.credential.last_used_at is
  'The beginning of the hour of its last call; serve notes it about a minute later. Null: never '
  'used.';
