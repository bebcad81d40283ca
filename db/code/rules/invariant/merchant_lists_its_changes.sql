create or replace view rules.merchant_lists_its_changes as
select 'merchant lists its changes' as invariant, d.tenant_id, d.event_seq::text as subject
from (
  select r.tenant_id, r.merchant_id, l.event_seq, 1 as expected, 0 as listed
  from core.ledger_entry l
  join rules.sequenced_event e on e.event_seq = l.event_seq
  left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
  join core.redemption r
    on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
  union all
  select p.tenant_id, p.merchant_id, unnest(p.event_seqs), 0, 1
  from core.merchant_page p) d
group by d.tenant_id, d.merchant_id, d.event_seq
having sum(d.expected) <> sum(d.listed);
comment on view rules.merchant_lists_its_changes is
  'Redemptions and reversals that the sequencer has processed and that are not once in the list '
  'of their merchant, and entries of a list that it should not have.';
