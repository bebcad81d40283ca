-- A problem for each party whose time zone the server does not know, even if the party already has
-- it. The programs may know different zones from the server, because theirs come with Node.
create or replace function rules.find_zone_problems(p_parties jsonb, p_path text) returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(
    jsonb_build_object(
      'path', format('%s.%s.time_zone', p_path, d.ordinality - 1),
      'message', 'the database server does not know this time zone')
    order by d.ordinality), '[]')
  from jsonb_array_elements(p_parties) with ordinality d
  where d.value ->> 'time_zone' = any (rules.find_unknown_zones(array(
    select p.value ->> 'time_zone'
    from jsonb_array_elements(p_parties) p
    where p.value ? 'time_zone'))));
