// Guards of the rule that a coupon has one redemption.
import { edit, type Sabotage } from "./sabotage.ts";

const rowLock = [
  edit(
    "db/code/rules/coupon/hold_coupons.sql",
    "k.lookup_hash = v_hash\n      for no key update;",
    "k.lookup_hash = v_hash;",
  ),
  edit("db/code/rules/coupon/hold_coupons.sql", "      for no key update skip locked;", "      ;"),
  edit("db/code/rules/coupon/hold_coupons.sql", "      for no key update of k skip locked) r", "      ) r"),
];
const uniqueIndex = [
  edit(
    "db/migrations/006-redemptions.sql",
    "create unique index coupon_has_one_live_redemption",
    "create index coupon_has_one_live_redemption",
  ),
];

const decide = "db/code/rules/redemption/decide_redemptions.sql";
const read = "db/code/rules/redemption/read_items.sql";
const refuse = "db/code/rules/redemption/refuse_redemption.sql";
const ofItems: [what: string, file: string, before: string, after: string][] = [
  ["discount has the tenant's unit", decide, "(c.call).amount_unit) as ordered", "'major') as ordered"],
  ["discount has the decimals of their currency", decide, "'{}'), c.decimals,", "'{}'), 2,"],
  ["amounts are read in the tenant's unit", read, "p_decimals, p_amount_unit) as", "p_decimals, 'major') as"],
  [
    "amounts are read with the decimals of their currency",
    read,
    "p_decimals, p_amount_unit) as",
    "2, p_amount_unit) as",
  ],
  ["refusal has the tenant's unit", refuse, "p_decimals, p_call.amount_unit) o", "p_decimals, 'major') o"],
  [
    "refusal has the decimals of their currency",
    refuse,
    "p_decimals, p_call.amount_unit) o",
    "2, p_call.amount_unit) o",
  ],
];

export const couponGuards: Sabotage[] = [
  {
    name: "a coupon that is freed too late gets an extension",
    edits: [
      edit(
        "db/migrations/005-coupons.sql",
        "if new.status = 'ISSUED' and new.valid_to = old.valid_to then",
        "if false then",
      ),
    ],
    tests: ["test/worker/tasks/expire-extended.test.ts"],
  },
  {
    name: "only a consumed coupon stays REDEEMED after a reversal",
    edits: [
      edit(
        "db/migrations/009-consistency.sql",
        "c.coupon_id = p_coupon_id) = 'consumed'",
        "c.coupon_id = p_coupon_id) is not null",
      ),
    ],
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "row lock of lock and redeem",
    behind: "the unique index and the triggers, as a 500",
    edits: rowLock,
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "row lock of confirm, cancel, void and reverse",
    behind: "the transition triggers, as a 500",
    edits: [
      edit(
        "db/code/rules/coupon/hold_coupon.sql",
        "where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash\n    for no key update;",
        "where c.tenant_id = p_call.tenant_id and c.lookup_hash = p_lookup_hash;",
      ),
      edit("db/code/rules/coupon/hold_coupon.sql", "  for no key update skip locked;", "  ;"),
    ],
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "a group does not wait for a held redemption",
    edits: [
      edit("db/code/rules/redemption/hold_redemption.sql", "  for no key update skip locked;", "  for no key update;"),
    ],
    tests: ["test/db/races/groups.test.ts"],
  },
  {
    name: "a redemption written in psql locks its coupon",
    edits: [edit("db/migrations/009-consistency.sql", "(v_is_held or c.xmin = pg_current_xact_id()::xid)", "true")],
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "the longest store in psql",
    edits: [edit("db/migrations/006-redemptions.sql", "check (length(value) <= 64)", "check (length(value) <= 640)")],
    tests: ["test/db/tables.test.ts"],
  },
  {
    name: "a change to a tenant or template waits for its first use",
    edits: [
      edit(
        "db/migrations/003-parties.sql",
        "    perform from core.tenant t where t.tenant_id = old.tenant_id for update;\n",
        "",
      ),
      edit(
        "db/migrations/004-batches.sql",
        "    where t.tenant_id = old.tenant_id and t.template_id = old.template_id\n    for update;",
        "    where t.tenant_id = old.tenant_id and t.template_id = old.template_id;",
      ),
    ],
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "unique index: one live redemption per coupon",
    behind: "the row lock, for every session that takes it",
    edits: uniqueIndex,
    tests: ["test/db/races/psql.test.ts"],
  },
  {
    name: "a new redemption has its ledger entry",
    edits: [edit("db/migrations/009-consistency.sql", "or (n.ended_at is null and (", "or (false and (")],
    tests: ["test/db/tables.test.ts"],
  },
  ...(
    [
      ["the distributor of its coupon", "or n.distributor_id is distinct from (", "or null = ("],
      [
        "the coupon of its redemption",
        "n.coupon_id is distinct from (\n       select r.coupon_id",
        "n.tenant_id is distinct from (\n       select r.tenant_id",
      ],
      ["the currency of its redemption", "\n         and r.currency = n.currency", ""],
      ["the time of its redemption", " and n.occurred_at = r.redeemed_at", ""],
      ["the time of its reversal", " and n.occurred_at = r.ended_at", ""],
      [
        "no number of another event",
        "where e.event_seq = n.event_seq) is not null",
        "where e.event_seq = n.event_seq) = 0",
      ],
      [
        "no ID of another event",
        "and e.event_id = n.entry_id) is not null",
        "and e.event_id = n.entry_id) is null and false",
      ],
    ] as const
  ).map(([what, before, after]) => ({
    name: `a ledger entry has ${what}`,
    edits: [edit("db/migrations/008-ledger.sql", before, after)],
    tests: ["test/db/tables.test.ts"],
  })),
  {
    name: "row lock and unique index",
    behind: "the triggers, which do not see other transactions",
    edits: [...rowLock, ...uniqueIndex],
    tests: ["test/db/races/coupon.test.ts"],
  },
  {
    name: "an expiry is not dated to a time at which the coupon was valid",
    edits: [edit("db/code/rules/coupon/free_coupon.sql", "greatest(p_coupon.valid_to, p_freed_at)", "p_freed_at")],
    tests: ["test/worker/tasks/expire.test.ts"],
  },
  {
    name: "a lock is confirmed whatever its template covers by now",
    edits: [
      edit(
        "db/code/api/confirm.sql",
        "if v_lock.merchant_id is distinct from v_merchant_id then",
        "if v_lock.merchant_id is distinct from v_merchant_id\n" +
          "    or not rules.is_in_scope(p_call.tenant_id, v_batch.template_id, v_merchant_id)\n  then",
      ),
    ],
    tests: ["test/commands/reapply.test.ts"],
  },
  {
    name: "a held batch keeps no other batch from expiring",
    edits: [edit("db/code/jobs/expire_coupons.sql", "for no key update skip locked", "for no key update")],
    tests: ["test/db/races/jobs.test.ts"],
  },
  {
    name: "end of validity",
    edits: [edit("db/code/rules/redemption/check_redeemable.sql", " or p_coupon.valid_to <= p_now then", " then")],
    tests: ["test/db/races/clock.test.ts", "test/db/api/variants-query.test.ts"],
  },
  {
    name: "append-only rows",
    edits: [
      edit(
        "db/migrations/001-schemas.sql",
        "begin\n  raise exception '%.% keeps its rows",
        "begin\n  return null;\n  raise exception '%.% keeps its rows",
      ),
    ],
    tests: ["test/db/tables.test.ts"],
  },
  {
    name: "no batch of a template that is over",
    edits: [edit("db/code/api/create_batch.sql", "if v_template.valid_to <= clock_timestamp() then", "if false then")],
    tests: ["test/db/api/expired-template.test.ts"],
  },
  {
    name: "the first of several wrong items is named",
    edits: [edit("db/code/rules/redemption/read_items.sql", "min(i.place)", "max(i.place)")],
    tests: ["test/db/api/discount.test.ts"],
  },
  ...ofItems.map(([what, file, before, after]) => ({
    name: `items of an order: their ${what}`,
    edits: [edit(file, before, after)],
    tests: ["test/db/api/discount.test.ts"],
  })),
  {
    name: "a wrong order_amount is named before a wrong item",
    edits: [
      edit(
        refuse,
        "when p_order_minor is null and p_call.args ->> 'order_amount' is not null\n",
        "when v_ordered.wrong_item is null\n",
      ),
    ],
    tests: ["test/db/api/discount.test.ts"],
  },
  {
    name: "query shows the live redemption first",
    edits: [edit("db/code/api/query.sql", "order by r.ended_at is null desc, r.started_at", "order by r.started_at")],
    tests: ["test/db/api/variants-query.test.ts"],
  },
];
