-- The reason of a patch, trimmed. Refuses a missing, overlong or unprintable one.
create or replace function rules.check_reason(p_reason text) returns text
language plpgsql immutable as $$
begin
  if coalesce(p_reason, '') !~ '[[:alnum:]]' then
    raise exception 'a patch needs a reason' using errcode = 'CP400';
  elsif length(p_reason) > 1000 then
    raise exception 'the reason is longer than 1,000 characters' using errcode = 'CP400';
  elsif not core.is_printable(trim(p_reason)) then
    raise exception 'the reason has a line break or another unprintable character'
      using errcode = 'CP400';
  end if;
  return trim(p_reason);
end
$$;
