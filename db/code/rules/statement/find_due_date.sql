-- The open business day if it is over, else null. A day is over when everything recorded on it is
-- settled. (An even later entry, from a DBA's session, goes to the next day.) Pure, so that tests
-- can try every boundary.
create or replace function rules.find_due_date(p_open_on date, p_now timestamptz, p_time_zone text)
returns date
language sql stable parallel safe
return case
  when rules.compute_local_date(rules.compute_settled_time(p_now), p_time_zone) > p_open_on
    then p_open_on
end;
comment on function rules.find_due_date(date, timestamptz, text) is
  'The open business day, when it is over.';
