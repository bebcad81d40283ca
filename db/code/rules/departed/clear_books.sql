-- Deletes statements of a tenant that has left, at most p_limit, or with the last of them its books
-- and feeds. Returns how many statements. The caller holds the sequencer's lock.
create or replace function rules.clear_books(p_tenant_id int, p_limit int) returns int
language plpgsql volatile as $$
declare
  v_done  int;
begin
  delete from core.statement d
  where d.ctid = any (array(
    select o.ctid from core.statement o where o.tenant_id = p_tenant_id limit p_limit));
  get diagnostics v_done = row_count;
  if v_done < p_limit then
    delete from core.ledger_book b where b.tenant_id = p_tenant_id;
    delete from core.feed f where f.tenant_id = p_tenant_id;
    delete from core.stuck_work s where s.tenant_id = p_tenant_id;
  end if;
  return v_done;
end
$$;
