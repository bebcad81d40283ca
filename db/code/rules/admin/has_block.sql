-- Whether the table is at least p_block + 1 blocks long.
create or replace function rules.has_block(p_table regclass, p_block bigint) returns boolean
language sql stable
return p_block < pg_relation_size(p_table) / current_setting('block_size')::int;
