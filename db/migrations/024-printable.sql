-- One rule for the characters of texts that callers and provisioning files bring. `printable` of
-- src/formats/field-types.ts is the same rule. Its code points are listed, because Unicode's
-- categories differ between versions of Node and of PostgreSQL. A test compares every code point.

-- Refused: controls, marks that turn the direction of writing, line and paragraph separators, what
-- is invisible and joins nothing, private use, and what Unicode will never assign. Joiners and soft
-- hyphens are parts of words (U+200C, U+200D, U+00AD, U+180E), as tags are of flags.
create function core.is_printable(p_text text) returns boolean
language sql immutable parallel safe
return p_text !~ (
  '[\u0001-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ue000-\uf8ff'
  '\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e001f\U000f0000-\U0010ffff]');
comment on function core.is_printable(text) is
  'Check: a text has no control character, line break, mark of direction, or other character that '
  'nobody can see.';

-- `not valid`: new texts are checked, and stored ones stay readable and can be restored.
alter domain core.client_key
  add constraint client_key_is_printable check (core.is_printable(value)) not valid;
alter domain core.place
  add constraint store_or_terminal_is_printable check (core.is_printable(value)) not valid;
alter domain core.order_id
  add constraint order_id_is_printable check (core.is_printable(value)) not valid;

alter table core.reversal
  add constraint reversal_reason_is_printable check (core.is_printable(reason)) not valid;
alter table core.voiding
  add constraint voiding_reason_is_printable check (core.is_printable(reason)) not valid;
alter table core.tenant
  add constraint tenant_name_is_printable check (core.is_printable(name)) not valid;
alter table core.party
  add constraint party_name_is_printable check (core.is_printable(name)) not valid;
alter table core.merchant
  add constraint merchant_name_is_printable check (core.is_printable(name)) not valid;
alter table core.template
  add constraint template_name_is_printable check (core.is_printable(name)) not valid,
  add constraint skus_are_printable check (core.is_printable(skus::text)) not valid;
alter table core.store
  add constraint store_external_id_is_printable check (core.is_printable(external_id)) not valid;
alter table core.terminal
  add constraint terminal_external_id_is_printable check (core.is_printable(external_id)) not valid;
