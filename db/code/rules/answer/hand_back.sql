-- Returned by an operation that would have to wait for a lock while its call may not wait. The
-- operation has written nothing. The gate runs the call again, alone, and then it may wait.
create or replace function rules.hand_back() returns core.answer
language sql immutable
return null::core.answer;
comment on function rules.hand_back() is 'No answer yet: the call has to run again, alone.';
