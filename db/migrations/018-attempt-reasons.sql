-- error names addresses of our network, so a subscriber sees another text.

alter table core.delivery_attempt
add column reason text,
add constraint reason_is_at_most_100_characters check (length(reason) <= 100) not valid;
comment on column core.delivery_attempt.error is
  'Why there was no usable answer, with names and addresses: for operators only.';
comment on column core.delivery_attempt.reason is
  'The kind of the error, for the subscriber. Null: there was an answer, or none is known.';
