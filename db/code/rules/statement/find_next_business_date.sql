-- The next day in the time zone. Skips days that do not exist there (Apia had no 2011-12-30). A day
-- without a midnight (Santiago in spring) begins at its first moment.
create or replace function rules.find_next_business_date(p_date date, p_time_zone text) returns date
language sql stable parallel safe
return rules.compute_local_date((p_date + 1)::timestamp at time zone p_time_zone, p_time_zone);
