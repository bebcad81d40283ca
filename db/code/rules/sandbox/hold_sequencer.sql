-- Waits until the sequencer has processed every event of the tenant that was committed before this
-- call, then takes its lock until the end of the transaction. So a day that is closed now has what
-- the caller has seen happen. Returns false if this call may not wait, or has waited for 2 s.
-- Leaves out events that wait for their party.
--
-- Each look is a new statement, so it sees the steps that have committed meanwhile.
create or replace function rules.hold_sequencer(p_call core.call) returns boolean
language plpgsql volatile as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_until  timestamptz := clock_timestamp() + interval '2 seconds';
begin
  loop
    if not exists (
      select
      from rules.event e
      where e.event_seq > (select s.high_seq from core.sequencer s)
        and e.event_seq <= v_last
        and e.tenant_id = p_call.tenant_id
        -- that of a statement is in no book
        and e.business_date is null)
      and not exists (
        select
        from rules.event e
        where e.event_seq = any (array(
            select g.event_seq from core.event_gap g where g.drawn_before is not null))
          and e.tenant_id = p_call.tenant_id)
    then
      -- not before: the sequencer needs it
      if rules.try_sequencer_lock() then
        return true;
      end if;
    end if;
    if not p_call.may_wait or clock_timestamp() > v_until then
      return false;
    end if;
    perform pg_sleep(0.02);
  end loop;
end
$$;
