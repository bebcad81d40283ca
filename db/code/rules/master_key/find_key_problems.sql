-- Compares the keys of a program with the registered ones. p_keys maps each version to the hex of
-- its fingerprint. A registered version that the program lacks is a problem only while it is in
-- use.
create or replace function rules.find_key_problems(
  p_keys jsonb, out version text, out problem text)
returns setof record
language sql stable
begin atomic
  select m.version, case when p_keys ? m.version then 'DIFFERS' else 'MISSING' end
  from core.master_key m
  where case
    when p_keys ? m.version then m.fingerprint is distinct from decode(p_keys ->> m.version, 'hex')
    else rules.is_key_in_use(m.version)
  end
  order by m.version;
end;
