-- apply stores the form of a URL that the URL parser writes. The constraint accepts that form, and
-- refuses what the parser refuses or would write otherwise.

update core.webhook w
set url = replace(regexp_replace(trim(w.url), '[\t\n\r]', '', 'g'), ' ', '%20')
where w.url ~ '[[:space:]]';

alter table core.webhook
drop constraint url_is_http,
add constraint url_is_http check (
  url ~ '^https?://[^/?#@:\\[:space:][:cntrl:]][^/?#@\\[:space:][:cntrl:]]*([/?#]|$)'
  and url !~ '[[:space:][:cntrl:]]'
  and url !~ '^https?://[^/?#]*:0+([/?#]|$)') not valid;
