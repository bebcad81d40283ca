-- Everything that a call recorded before this time has been committed by p_now, because a call runs
-- for less than 5 s.
create or replace function rules.compute_settled_time(p_now timestamptz) returns timestamptz
language sql immutable parallel safe
return p_now - interval '5 seconds';
