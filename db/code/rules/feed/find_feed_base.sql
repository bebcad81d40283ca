-- The position after which a feed or the list of a merchant begins, if it has no page yet.
create or replace function rules.find_feed_base(p_tenant_id int) returns bigint
language plpgsql stable as $$
begin
  return (
    select greatest(s.feed_base, t.feed_base)
    from core.sequencer s
    left join core.tenant t on t.tenant_id = p_tenant_id);
end
$$;
