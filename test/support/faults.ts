// What raises the alerts about the state of the database, by the name of the alert, as a superuser makes it without
// triggers in a database with one batch that is not minted. All faults can be there at once.

type Fault = { made: string; undone: string };

export const faults = {
  CouponStuckWork: {
    made: "select rules.note_stuck_work('mint', tenant_id, party_id, 'bat_1', 'why') from core.party limit 1",
    undone: "delete from core.stuck_work",
  },
  CouponFeedLag: {
    made: `
      insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
      select tenant_id, gen_random_uuid(), 'reconciliation.ready', party_id, '2026-01-01', '2026-01-02', '2026-01-02'
      from core.party limit 1`,
    undone: "delete from core.event where event_type = 'reconciliation.ready'",
  },
  CouponWebhookDisabled: {
    made: `
      insert into core.webhook (tenant_id, party_id, url, sealed_secret, secret_hash, disabled_at)
      select tenant_id, party_id, 'https://off.example/', '1', '1', now() from core.party order by party_id desc limit 1`,
    undone: "delete from core.webhook",
  },
  CouponDeliveryLag: {
    made: `
      insert into core.webhook (tenant_id, party_id, url, sealed_secret, secret_hash)
      select tenant_id, party_id, 'https://x.example/', '1', '1' from core.party order by party_id limit 1;
      insert into core.delivery (tenant_id, party_id, event_id, event_seq, next_attempt_at)
      select tenant_id, party_id, gen_random_uuid(), 0, now() - interval '11 minutes' from core.webhook
      where disabled_at is null`,
    undone: "delete from core.delivery; delete from core.webhook",
  },
  CouponDayOverdue: {
    made: `
      insert into core.ledger_book (tenant_id, party_id, open_on)
      select tenant_id, party_id, '2026-01-01' from core.party limit 1`,
    undone: "delete from core.ledger_book",
  },
  CouponStatementLag: {
    made: `
      insert into core.statement (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
      select tenant_id, party_id, '2026-01-01', 0, false, '2026-01-02' from core.party limit 1`,
    undone: "delete from core.statement",
  },
  CouponMintLag: {
    made: "update core.batch set created_at = now() - interval '2 hours' where status = 'PENDING'",
    undone: "update core.batch set created_at = now()",
  },
  CouponRecallLag: {
    made: `
      update core.batch set (suspended_at, recalled_at, recall_caller_id, minted_count) =
        (now(), now() - interval '2 hours', 0, 1) where status = 'PENDING'`,
    undone: `
      update core.batch set (suspended_at, recalled_at, recall_caller_id, minted_count) = (null, null, null, 0)
      where status = 'PENDING'`,
  },
} satisfies Record<string, Fault>;
