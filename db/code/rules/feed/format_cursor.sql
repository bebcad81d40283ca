-- A feed position as a cursor.
create or replace function rules.format_cursor(p_position bigint) returns text
language sql immutable strict parallel safe
return 'cur_'
  || translate(encode(int8send(p_position # 6148914691236517205), 'base64'), '+/=', '-_');
