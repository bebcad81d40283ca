-- The same as rules.format_id, for the two IDs in the answer to a lock or redeem. It is a copy
-- without the setting, which views need and which takes a quarter of the time.
create or replace function rules.render_id(p_prefix text, p_id uuid) returns text
language plpgsql immutable strict parallel safe as $$
declare
  a       constant bytea := convert_to(regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)',
    regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)', E'\\\\1\\1', 'g'), 'g'), 'UTF8');
  v_bits  bit(128) := ('x' || encode(uuid_send(p_id), 'hex'))::bit(128);
  v_part  bigint := substring(v_bits, 1, 8)::bigint;
  v_text  bytea := substr(a, (v_part << 1)::int + 1, 2);
begin
  for i in 0 .. 2 loop
    v_part := substring(v_bits, i * 40 + 9, 40)::bigint;
    v_text := v_text
      || substr(a, (v_part >> 29 & 2046)::int + 1, 2)
      || substr(a, (v_part >> 19 & 2046)::int + 1, 2)
      || substr(a, (v_part >> 9 & 2046)::int + 1, 2)
      || substr(a, (v_part << 1 & 2046)::int + 1, 2);
  end loop;
  return p_prefix || '_' || convert_from(v_text, 'UTF8');
end
$$;
