-- The last check of each invariant. It survives a restart of work, and a check that was interrupted
-- goes on with the others.

create table core.invariant_check (
  invariant    text         primary key,
  broken_rows  bigint       not null,
  example      text,
  checked_at   timestamptz  not null,
  constraint invariant_is_at_most_63_characters check (length(invariant) <= 63),
  constraint broken_invariant_has_an_example check ((broken_rows > 0) = (example is not null))
);
comment on table core.invariant_check is
  'The last check of each invariant, by its name in report.invariants. Of an invariant that the '
  'view no longer has, the row stays and means nothing.';
comment on column core.invariant_check.invariant is 'The name of its view, with blanks.';
comment on column core.invariant_check.broken_rows is 'How many rows of report.invariants it had.';
comment on column core.invariant_check.example is 'The tenant and subject of one of them.';
