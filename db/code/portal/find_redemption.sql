-- report.find_redemption of what the company may see.
create or replace function portal.find_redemption(p_id text) returns setof portal.redemption
language sql stable
begin atomic
  select r.*
  from portal.redemption r
  where r.redemption_key = any (array(select unnest(portal.find_keys(p_id))));
end;
