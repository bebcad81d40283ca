-- The key of the advisory lock that each step of the sequencer takes.
create or replace function rules.compute_sequencer_lock() returns bigint
language sql immutable parallel safe
return hashtextextended('sequencer', 0);
