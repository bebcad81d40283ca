-- The advisory lock that a worker session holds as long as it lasts.
create or replace function rules.compute_worker_lock(p_worker int) returns bigint
language sql immutable
-- equivalent mutant (literal 0): any number will do
return hashtextextended('worker ' || p_worker, 0);
