-- Each program that uses keys calls this when it starts; `serve` and `work` call it again later.
-- Registers the versions of the master key that are new to this database, unless there is a problem
-- with any version. Returns the problems. If there are none, the program may start. p_keys maps
-- each version to the hex of its fingerprint.
create or replace function rules.register_keys(p_keys jsonb, out version text, out problem text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- A standby can only compare.
  if current_setting('transaction_read_only')::boolean then
    return query select f.version, f.problem from rules.find_key_problems(p_keys) f;
    return;
  end if;
  insert into core.master_key (version, fingerprint)
  select k.key, decode(k.value, 'hex')
  from jsonb_each_text(p_keys) k
  where not exists (select from core.master_key m where m.version = k.key)
    and not exists (select from rules.find_key_problems(p_keys))
  on conflict do nothing;
  -- Read after the write: a program with another key may have been faster.
  return query select f.version, f.problem from rules.find_key_problems(p_keys) f;
end
$$;
