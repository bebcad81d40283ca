-- A statement of the list as JSON.
create or replace function rules.render_statement(
  p_distributor text, p_business_date date, p_closed_at timestamptz, p_files text[])
returns text
language sql stable
return format(
  '{"business_date":"%s","distributor_party_id":"%s","closed_at":"%s","files":[%s]}',
  to_char(p_business_date, 'YYYY-MM-DD'), p_distributor, rules.format_time(p_closed_at),
  array_to_string(p_files, ','));
