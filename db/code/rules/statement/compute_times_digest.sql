-- The recorded_digest of a page of postings. The same on every server: it depends on no setting.
create or replace function rules.compute_times_digest(p_times timestamptz[]) returns uuid
language sql immutable parallel safe
begin atomic
  select md5(string_agg(
           (date_part('epoch', t.at) * 1000000)::bigint::text, ',' order by t.place))::uuid
  from unnest(p_times) with ordinality t (at, place);
end;
