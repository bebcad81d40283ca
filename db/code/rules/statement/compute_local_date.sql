-- The local day of a moment in a time zone.
create or replace function rules.compute_local_date(p_at timestamptz, p_time_zone text)
returns date
language sql stable parallel safe
return (p_at at time zone p_time_zone)::date;
