comment on type core.answer is
  'The answer of an operation. code: the error code, null for a success. resource: what '
  'NOT_FOUND is about. A null answer hands the call back: it would have to wait for a lock, and '
  'nothing was written.';
