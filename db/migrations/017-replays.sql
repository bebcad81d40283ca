-- A replay is asked for while an attempt of the same event may be under way. What that attempt
-- brings says nothing about the replay.

alter table core.delivery add column counts_for uuid;
comment on column core.delivery.counts_for is
  'Null: every attempt counts. Since a replay, only attempts of this lease (core.webhook.holder) '
  'count, which began after the replay; all zeros: none has begun.';
