-- Without arguments and immutable: a plan that calls it holds the value.
create or replace function rules.base32_pairs() returns bytea
language sql immutable parallel safe
begin atomic
  select convert_to(string_agg(a.digit || b.digit, '' order by a.place, b.place), 'UTF8')
  from regexp_split_to_table('0123456789abcdefghjkmnpqrstvwxyz', '') with ordinality a (digit, place),
       regexp_split_to_table('0123456789abcdefghjkmnpqrstvwxyz', '') with ordinality b (digit, place);
end;
comment on function rules.base32_pairs() is 'What ten bits are in Crockford Base32, two digits for each of 0 to 1023, without gaps.';
