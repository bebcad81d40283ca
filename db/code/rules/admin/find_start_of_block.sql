-- The first possible place of a row in block p_block of a table.
create or replace function rules.find_start_of_block(p_block bigint) returns tid
language sql immutable
return ('(' || p_block::text || ',0)')::tid;
