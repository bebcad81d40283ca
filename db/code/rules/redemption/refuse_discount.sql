create or replace function rules.refuse_discount(p_call core.call, p_code text, p_missing text)
returns core.answer
language sql immutable
return rules.refuse(p_call, p_code,
  case when p_missing is not null then format('{"missing":"%s"}', p_missing)::json end);
comment on function rules.refuse_discount(core.call, text, text) is
  'The refusal of an order without a discount. p_missing: the field that the order lacks.';
