-- Whether the outcome of an attempt under this lease counts for a delivery
-- (core.delivery.counts_for).
create or replace function rules.is_attempt_counted(p_counts_for uuid, p_holder uuid)
returns boolean
language sql immutable
begin atomic
  select coalesce(p_counts_for = p_holder, p_counts_for is null);
end;
