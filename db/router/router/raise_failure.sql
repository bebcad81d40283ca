-- Raises what a program has to know when a cell could not do something: connection_failure, which
-- means "try again later", if the cell could not be reached; else the cell's own error.
create or replace function router.raise_failure(p_state text, p_message text) returns void
language plpgsql stable as $$
begin
  if p_state = 'XX000' and p_message like 'PL/Proxy function %' then
    raise exception '%', p_message using errcode = 'connection_failure';
  end if;
  raise exception '%', p_message using errcode = p_state;
end
$$;
