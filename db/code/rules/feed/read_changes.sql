-- The numbers of up to p_limit changes of a merchant after position p_after, in the order of their
-- positions, and the position of the last of them. Only those that were recorded from p_from until
-- just before p_to, if these are given.
--
-- Pages are ordered by the time that they reach, so two binary searches find where the period
-- begins and ends. A change of the period can only be behind its end if it came late, and the few
-- pages with late changes have an index.
create or replace function rules.read_changes(
  p_tenant_id int, p_merchant_id int, p_after bigint, p_from timestamptz, p_to timestamptz,
  p_limit int, out event_seqs bigint[], out last_position bigint)
returns record
language plpgsql stable as $$
declare
  v_begin  bigint := p_after + 1;
  v_end    bigint := 9223372036854775807;
  v_page   record;
  v_found  record;
begin
  event_seqs := '{}';
  if p_from is not null then
    v_begin := greatest(
      v_begin, rules.find_change_position(p_tenant_id, p_merchant_id, p_from));
  end if;
  if p_to is not null then
    v_end := rules.find_change_position(
      p_tenant_id, p_merchant_id, p_to + interval '5 seconds');
  end if;
  for v_page in
    (select p.first_position, p.event_seqs
     from core.merchant_page p
     where p.tenant_id = p_tenant_id
       and p.merchant_id = p_merchant_id
       and p.first_position >= coalesce((
         select b.first_position
         from core.merchant_page b
         where b.tenant_id = p_tenant_id
           and b.merchant_id = p_merchant_id
           and b.first_position <= v_begin
         order by b.first_position desc
         limit 1), 0)
       and p.first_position <= v_end
       and (p_to is null or p.recorded_from < p_to)
     order by p.first_position
     limit p_limit + 1000)
    union all
    (select p.first_position, p.event_seqs
     from core.merchant_page p
     where p.tenant_id = p_tenant_id
       and p.merchant_id = p_merchant_id
       and p.first_position > v_end
       and p.first_position + cardinality(p.event_seqs) > v_begin
       and p.recorded_through - p.recorded_from > interval '5 seconds'
       and p.recorded_from < p_to
     order by p.first_position)
  loop
    select array_agg(c.event_seq order by c.event_seq) as event_seqs,
           max(c.position) as last_position
      into v_found
    from (
      select l.event_seq, v_page.first_position + x.place - 1 as position
      from unnest(v_page.event_seqs) with ordinality x (event_seq, place)
      join core.ledger_entry l on l.event_seq = x.event_seq
      where v_page.first_position + x.place - 1 >= v_begin
        and (p_from is null or l.recorded_at >= p_from)
        and (p_to is null or l.recorded_at < p_to)
      order by x.place
      limit p_limit - cardinality(event_seqs)) c;
    event_seqs := event_seqs || v_found.event_seqs;
    last_position := coalesce(v_found.last_position, last_position);
    exit when cardinality(event_seqs) = p_limit;
  end loop;
end
$$;
