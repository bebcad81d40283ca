-- The business day that is over: null while p_open_on still lasts. Pure, so that every boundary can be tried.
-- Over means that all of it is settled. (An entry that comes later still, from a DBA's session, goes to the next day.)
create or replace function rules.find_due_date(p_open_on date, p_now timestamptz, p_time_zone text) returns date
language sql stable parallel safe
return case when rules.to_local_date(rules.compute_settled_time(p_now), p_time_zone) > p_open_on then p_open_on end;
comment on function rules.find_due_date(date, timestamptz, text) is 'The open business day, when it is over.';
