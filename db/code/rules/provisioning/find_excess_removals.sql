-- A problem for each kind of which a document removes more than ten. p_removals: what
-- rules.find_removals returned.
create or replace function rules.find_excess_removals(p_removals jsonb) returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(jsonb_build_object(
    'path', k.kind || 's', 'message', format(
      '%s would be removed: %s and %s more. Check the file; --allow-removals allows it.',
      k.count, array_to_string(k.names[:5], ', '), k.count - 5)) order by k.kind), '[]')
  from (
    select r.value ->> 'kind' as kind, count(*) as count, array_agg(
             concat_ws(' ', r.value ->> 'tenant', r.value ->> 'template', r.value ->> 'merchant',
               r.value ->> 'store', r.value ->> 'name')
             order by r.ordinality) as names
    from jsonb_array_elements(p_removals) with ordinality r
    group by 1
    having count(*) > 10) k);
