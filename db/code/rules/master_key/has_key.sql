-- Whether a program's keys include the registered key of this version. p_keys is as in
-- rules.find_key_problems.
create or replace function rules.has_key(p_keys jsonb, p_version text) returns boolean
language sql stable
begin atomic
  select exists (
    select from core.master_key m
    where m.version = p_version and encode(m.fingerprint, 'hex') = p_keys ->> m.version);
end;
