-- The feed position of a cursor; null if the text is not one.
create or replace function rules.parse_cursor(p_cursor text) returns bigint
language plpgsql immutable strict parallel safe as $$
declare
  v_position  bigint;
begin
  if p_cursor !~ '^cur_[A-Za-z0-9_-]{11}$' then
    return null;
  end if;
  v_position := ('x' || encode(
    decode(translate(substr(p_cursor, 5), '-_', '+/') || '=', 'base64'), 'hex'))::bit(64)::bigint
    # 6148914691236517205;
  return case
    when v_position >= 0 and rules.format_cursor(v_position) = p_cursor then v_position
  end;
end
$$;
