-- A party may register a public key, to which the service encrypts the codes of its batches. `not
-- valid`, because a new column needs no validation.
alter table core.party
  add column public_key text,
  add constraint public_key_is_an_age_recipient check (
    public_key ~ '^age1[02-9ac-hj-np-z]{58}$') not valid;
comment on column core.party.public_key is
  'An X25519 key as the program age writes it. Codes leave over HTTP only encrypted to it. Null: '
  'the party has none, so it cannot fetch codes.';
