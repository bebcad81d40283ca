-- Forgets the missing event numbers that were rolled back, which is certain once every transaction
-- that may have drawn them has ended. Call this after a step that found every late event.
create or replace function rules.forget_gaps(p_oldest_running xid8) returns void
language plpgsql volatile as $$
begin
  delete from core.event_gap g
  where g.drawn_before <= p_oldest_running
     -- These gaps come from another server, before a restore. An idle step must not get a
     -- transaction ID here.
     or g.drawn_before > coalesce(
       pg_current_xact_id_if_assigned(), pg_snapshot_xmax(pg_current_snapshot()));
end
$$;
