-- The day after, as the zone has it: where the calendar skips a day (Apia had no 2011-12-30), the one after that.
-- A day without a midnight (Santiago, in spring) begins with its first moment.
create or replace function rules.find_next_business_date(p_date date, p_time_zone text) returns date
language sql stable parallel safe
return rules.to_local_date((p_date + 1)::timestamp at time zone p_time_zone, p_time_zone);
comment on function rules.find_next_business_date(date, text) is 'The next local day that exists.';
