-- Whether the session of a worker has ended: its lock is free. The server frees the lock when the
-- session ends, however that happens: stop, kill, lost connection, restart of the server. Callers
-- try a shared lock, so they do not keep each other out. Returns null for null: then only the lease
-- counts.
create or replace function rules.is_worker_gone(p_worker int) returns boolean
language sql volatile
return pg_try_advisory_xact_lock_shared(rules.compute_worker_lock(p_worker));
