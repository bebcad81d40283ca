create index concurrently if not exists delivery_is_due_in_turn
on core.delivery (tenant_id, party_id, is_behind, next_attempt_at, event_seq)
where parked_at is null;
