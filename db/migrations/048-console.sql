-- The console: its schema, and who is signed in. The role coupon_console is in roles.sql.

create schema console;
comment on schema console is 'Everything that only coupon_console may call.';

create table core.console_session (
  token_hash    bytea        primary key,
  name          text         not null,
  signed_in_at  timestamptz  not null,
  expires_at    timestamptz  not null,
  constraint token_hash_is_sha256 check (length(token_hash) = 32),
  constraint console_name_is_1_to_100_characters check (length(name) between 1 and 100),
  constraint console_name_is_printable check (core.is_printable(name)),
  constraint session_lasts_at_most_a_day check (
    expires_at > signed_in_at and expires_at <= signed_in_at + interval '1 day')
);
comment on table core.console_session is
  'Staff that is signed in to the console. Signing out deletes a row; the audit keeps both.';
comment on column core.console_session.token_hash is
  'The sha256 of the cookie, which only the browser holds.';
comment on column core.console_session.name is
  'Whose token it was, or the user that the reverse proxy named.';
