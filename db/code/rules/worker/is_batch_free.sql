-- Whether no worker holds the lease of a batch: there is none, its time is over, or the session of
-- its worker is gone. Null, like rules.is_worker_gone, if only the time counts.
create or replace function rules.is_batch_free(p_lease_until timestamptz, p_worker int)
returns boolean
language sql volatile
return p_lease_until is null
  or p_lease_until <= clock_timestamp()
  or rules.is_worker_gone(p_worker);
