-- The audit says what changed, and its reasons are readable in a terminal.

-- `apply` alone may have nothing to say: a new credential without a party has only a secret.
alter table core.audit
  add constraint audit_says_what_changed check (details <> '{}' or action = 'apply') not valid,
  add constraint audit_reason_is_printable check (core.is_printable(reason)) not valid;
