-- The open business day if it is over, else null. A day counts as over once all calls that
-- recorded something on it are settled, 5 s after its end (rules.compute_settled_time). (A DBA's
-- transaction may commit even later; its entries go to the next day.) A pure function, so that
-- tests can try every boundary.
create or replace function rules.find_due_date(p_open_on date, p_now timestamptz, p_time_zone text)
returns date
language sql stable parallel safe
return case
  when rules.compute_local_date(rules.compute_settled_time(p_now), p_time_zone) > p_open_on
    then p_open_on
end;
