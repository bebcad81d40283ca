-- True for one transaction at a time. An advisory lock and no row's, so that a step that finds nothing writes
-- nothing.
create or replace function rules.try_sequencer_lock() returns boolean
language sql volatile
return pg_try_advisory_xact_lock(hashtextextended('sequencer', 0));
comment on function rules.try_sequencer_lock() is 'Takes the place of the sequencer until the end of the transaction, if it is free.';
