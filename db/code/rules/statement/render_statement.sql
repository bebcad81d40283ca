-- A statement as an item of the list. Variant A also names the distributor, because its list
-- includes all distributors.
create or replace function rules.render_statement(
  p_call core.call, p_distributor text, p_business_date date, p_closed_at timestamptz,
  p_files text[])
returns text
language sql stable
return format('{"business_date":"%s",%s"closed_at":"%s","files":[%s]}',
  to_char(p_business_date, 'YYYY-MM-DD'),
  case p_call.variant
    when 'A' then format('"distributor_party_id":"%s",', p_distributor)
    else ''
  end,
  rules.format_time(p_closed_at), array_to_string(p_files, ','));
comment on function rules.render_statement(core.call, text, date, timestamptz, text[]) is
  'A statement of the list as JSON.';
