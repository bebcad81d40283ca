-- Takes the sequencer's lock until the end of the transaction. Returns false if another transaction
-- has it. It is an advisory lock, because a row lock would be a write even for a step that finds
-- nothing.
create or replace function rules.try_sequencer_lock() returns boolean
language sql volatile
return pg_try_advisory_xact_lock(rules.compute_sequencer_lock());
