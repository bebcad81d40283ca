-- GET /v1/batches lists batches, newest first. Variant A: those of the tenant. Variant B: those
-- that the caller makes, and those that were released to it as distributor. A batch that is made
-- meanwhile is before the first page, so later pages do not move.
create or replace function api.list_batches(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_cursor  text := p_call.args ->> 'cursor';
  v_limit   int := coalesce((p_call.args ->> 'limit')::int, 100);
  v_before  bigint := 2147483648;
  v_page    int[];
begin
  if v_cursor is not null then
    v_before := rules.parse_cursor(v_cursor);
    if v_before is null then
      return rules.refuse_field(p_call, 'cursor', 'must be the next_cursor of an earlier page');
    end if;
  end if;
  v_page := array(
    select b.batch_id
    from rules.list_visible_batches(
      p_call, p_call.args ->> 'status', p_call.args ->> 'template', v_before, v_limit + 1) b
    order by b.batch_id desc
    limit v_limit + 1);
  return rules.succeed(format('{"ok":true,"batches":[%s],"next_cursor":%s}', (
    select string_agg(rules.describe_batch(p_call.tenant_id, x.batch_id), ',' order by x.place)
    from unnest(v_page[1 : v_limit]) with ordinality x (batch_id, place)),
    case
      when cardinality(v_page) > v_limit
        then '"' || rules.format_cursor(v_page[v_limit]) || '"'
      else 'null'
    end));
end
$$;
