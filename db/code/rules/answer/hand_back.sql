-- An operation returns this if it would have to wait for a lock, but its call may not wait. The
-- operation has written nothing by then. The gate runs the call again, alone; then it may wait.
create or replace function rules.hand_back(p_ordinal int default null) returns core.answer
language sql immutable
return (null, null, null, null, p_ordinal, false, null, null, null, null, null)::core.answer;
