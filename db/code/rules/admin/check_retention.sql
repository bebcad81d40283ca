-- Refuses a retention of less than a day. Retries need the records of the last few hours, and a
-- slip in psql (0, a negative number, null) must not empty a table.
create or replace function rules.check_retention(p_days int) returns void
language plpgsql immutable as $$
begin
  if coalesce(p_days, 0) < 1 then
    raise exception 'a retention is at least 1 day, not %', coalesce(p_days::text, 'null')
      using errcode = 'CP400';
  end if;
end
$$;
