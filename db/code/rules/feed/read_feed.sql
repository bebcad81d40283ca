-- The numbers of up to p_limit events of a feed after position p_after, in the order of their
-- positions. last_position is the position of the last of them, or null if there is none. runs
-- lists the ends of the runs in which the numbers ascend. There is one run, unless an event was
-- late.
--
-- Reads page by page and stops at the page that completes the list. The limit of the query makes
-- every plan read the index in order.
create or replace function rules.read_feed(
  p_tenant_id int, p_party_id int, p_after bigint, p_limit int,
  out event_seqs bigint[], out last_position bigint, out runs int[])
language plpgsql stable as $$
declare
  v_page   record;
  v_seqs   bigint[];
  v_first  bigint;  -- too large for an int after positions that a restore skipped
  v_last   int;
begin
  event_seqs := '{}';
  runs := '{}';
  for v_page in
    select p.first_position, p.event_seqs
    from core.feed_page p
    where p.tenant_id = p_tenant_id
      and p.party_id = p_party_id
      and p.first_position >= coalesce((
        select b.first_position
        from core.feed_page b
        where b.tenant_id = p_tenant_id
          and b.party_id = p_party_id
          and b.first_position <= p_after + 1
        order by b.first_position desc
        limit 1), 0)
    order by p.first_position
    limit p_limit + 1
  loop
    v_seqs := v_page.event_seqs;
    v_first := greatest(p_after - v_page.first_position + 2, 1);
    continue when v_first > cardinality(v_seqs);
    v_last := least(cardinality(v_seqs), v_first - 1 + p_limit - cardinality(event_seqs));
    if v_seqs[v_first::int] < event_seqs[cardinality(event_seqs)] then
      runs := runs || cardinality(event_seqs);
    end if;
    event_seqs := event_seqs || v_seqs[v_first::int : v_last];
    last_position := v_page.first_position + v_last - 1;
    exit when cardinality(event_seqs) = p_limit;
  end loop;
  if cardinality(event_seqs) > 0 then
    runs := runs || cardinality(event_seqs);
  end if;
end
$$;
