-- The scheme, host and port of a webhook's URL. Path and query may hold a token of the receiver.
create or replace function rules.format_url_host(p_url text) returns text
language sql immutable parallel safe
return regexp_replace(p_url, '^([a-z]+://)?(?:[^/?#@]*@)?([^/?#]*).*$', '\1\2', 'is');
