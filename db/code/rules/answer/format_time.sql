-- A time in ISO 8601, in UTC with milliseconds.
create or replace function rules.format_time(p_at timestamptz) returns text
language sql stable parallel safe
return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
