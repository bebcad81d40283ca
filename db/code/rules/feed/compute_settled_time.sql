-- Whoever recorded something before this has committed by now: a call may run for less than these 5 s.
create or replace function rules.compute_settled_time(p_now timestamptz) returns timestamptz
language sql immutable parallel safe
return p_now - interval '5 seconds';
comment on function rules.compute_settled_time(timestamptz) is 'What was recorded before this moment is visible at p_now.';
