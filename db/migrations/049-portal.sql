-- The portal: a company opens it with a link that its backend asks for, and sees its own things.

create schema portal;
comment on schema portal is
  'The views of schema report again, with the rows of the company that is signed in. Only '
  'coupon_portal may use it.';

create table core.portal_link (
  link_id        uuid         not null,
  tenant_id      int          not null,
  credential_id  int          not null,
  created_at     timestamptz  not null,
  expires_at     timestamptz  not null,
  primary key (link_id, tenant_id),
  foreign key (tenant_id, credential_id) references core.credential,
  constraint link_lasts_at_most_ten_minutes check (
    expires_at > created_at and expires_at <= created_at + interval '10 minutes')
);
create index portal_link_by_end on core.portal_link (expires_at);
comment on table core.portal_link is
  'Links to the portal that are not used yet. Signing in deletes a row, so a link is good once.';
comment on column core.portal_link.link_id is
  'Known to whoever got the answer. The link has a keyed hash of it, which no table has.';
comment on column core.portal_link.credential_id is
  'The access key that asked for it. The session sees what this key may see.';

alter table core.console_session
  add column tenant_id int,
  add column credential_id int,
  add foreign key (tenant_id, credential_id) references core.credential,
  add constraint company_has_a_credential check ((tenant_id is null) = (credential_id is null)),
  add constraint company_session_lasts_at_most_an_hour check (
    credential_id is null or expires_at <= signed_in_at + interval '1 hour');
comment on table core.console_session is
  'Who is signed in to the console: staff, or a company. Signing out deletes a row; the audit '
  'keeps both.';
comment on column core.console_session.name is
  'Of staff: whose token it was, or the user that the reverse proxy named. Of a company: its '
  'external ID, pty_… or, in Variant A, ten_….';
comment on column core.console_session.credential_id is
  'The access key that asked for the link. When it is revoked, the session ends. Null: staff.';
