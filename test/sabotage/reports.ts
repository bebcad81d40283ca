// Figures of reports, metrics and invariants that test/story computes itself.
import { edit, type Sabotage } from "./sabotage.ts";

const tests = ["test/story/story.test.ts"];

export const reportGuards: Sabotage[] = [
  {
    name: "report.coupon shows an unreleased coupon as CREATED in Variant B",
    edits: [edit("db/code/report/coupon.sql", "b.status = 'ALLOCATED', t.variant", "true, t.variant")],
    tests,
  },
  {
    name: "report.coupon reads the live lock of a coupon that was locked before",
    mayThrow: true,
    edits: [edit("db/code/report/coupon.sql", " and r.ended_at is null)\n         end", ")\n         end")],
    tests,
  },
  {
    name: "webhook_health counts time-outs as failures",
    edits: [edit("db/code/report/webhook_health.sql", "where x.http_status is null or ", "where ")],
    tests,
  },
  {
    name: "webhook_health counts attempts of 24 hours",
    edits: [edit("db/code/report/webhook_health.sql", "interval '24 hours'", "interval '30 hours'")],
    tests,
  },
  {
    name: "webhook_health shows no pause that is over",
    edits: [
      edit("db/code/report/webhook_health.sql", "w.paused_until > clock_timestamp()", "w.paused_until is not null"),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "a merchant's balance is its own",
    edits: [edit("db/code/report/merchant_balance.sql", "partition by l.tenant, l.merchant, l.currency\n", "")],
    tests,
  },
  ...[
    ["distributor", "partition by t.external_id, o.external_id"],
    ["maker", "partition by l.tenant, l.maker"],
    ["merchant", "partition by l.tenant, l.merchant"],
  ].map(([owner, parts]) => ({
    name: `the balance of a ${owner} is kept by currency`,
    edits: [edit(`db/code/report/${owner}_balance.sql`, `${parts}, l.currency`, parts!)],
    tests: ["test/db/report.test.ts"],
  })),
  ...(
    [
      ["distributor", "partition by t.external_id,", " o.external_id,"],
      ["maker", "partition by l.tenant,", " l.maker,"],
      ["merchant", "partition by l.tenant,", " l.merchant,"],
    ] as const
  ).map(([owner, kept, dropped]) => ({
    name: `a balance is of one ${owner}`,
    edits: [edit(`db/code/report/${owner}_balance.sql`, kept + dropped, kept)],
    tests: ["test/db/admin/owners.test.ts"],
  })),
  ...(
    [
      ["distributor", "l.entry_id"],
      ["maker", "l.entry_key"],
      ["merchant", "l.entry_key"],
    ] as const
  ).map(([owner, key]) => ({
    name: `a ${owner}'s balance adds entries of one moment one by one`,
    edits: [edit(`db/code/report/${owner}_balance.sql`, `order by l.recorded_at, ${key})`, "order by l.recorded_at)")],
    tests: ["test/db/report.test.ts"],
  })),
  {
    name: "the lag of feeds counts events that commit late",
    edits: [
      edit(
        "db/code/jobs/read_metrics.sql",
        "where e.event_seq = any (array(",
        "where false and e.event_seq = any (array(",
      ),
    ],
    tests: ["test/worker/tasks/event-gaps.test.ts"],
  },
  {
    name: "report.merchant lists the terminals of each store",
    edits: [edit("db/code/report/merchant.sql", "x.tenant_id = s.tenant_id and x.store_id", "x.store_id")],
    tests,
  },
  {
    name: "minted coupons do not count as pending",
    edits: [edit("db/code/jobs/read_metrics.sql", "b.total_count - b.minted_count", "b.total_count")],
    tests,
  },
  {
    name: "a parked delivery counts as parked",
    edits: [
      edit(
        "db/code/jobs/record_deliveries.sql",
        "when rules.compute_retry_delay(r.attempt) is null then 'parked'",
        "when false then 'parked'",
      ),
    ],
    tests,
  },
  {
    name: "the lag of a day counts from its end",
    edits: [edit("db/code/jobs/read_metrics.sql", "(d.business_date + 1)::timestamp", "d.business_date::timestamp")],
    tests,
  },
  {
    name: "the lag of deliveries leaves out paused webhooks",
    edits: [
      edit(
        "db/code/jobs/read_metrics.sql",
        "w.disabled_at is null and (w.paused_until is null or w.paused_until <= v_now)",
        "w.disabled_at is null",
      ),
    ],
    tests,
  },
  {
    name: "the check of a summary does not trust its writer",
    edits: [
      edit(
        "db/code/rules/statement/summarize_day.sql",
        "sum(e.amount_minor) filter (where e.entry_type = 'REVERSAL')",
        "sum(-e.amount_minor) filter (where e.entry_type = 'REVERSAL')",
      ),
    ],
    tests: ["test/db/invariants.test.ts"],
  },
  ...(
    [
      ["is read", "db/code/rules/answer/parse_amount.sql", "1000,10000}", "1000,100000}"],
      ["is shown", "db/code/rules/answer/format_amount.sql", "0.001,0.0001}", "0.001,0.00001}"],
    ] as const
  ).map(([what, file, before, after]) => ({
    name: `an amount with four decimals ${what}`,
    edits: [edit(file, before, after)],
    tests: ["test/db/api/discount.test.ts"],
  })),
  {
    name: "a query shows amounts in the tenant's unit",
    edits: [edit("db/code/rules/coupon/render_coupon.sql", "p_call.amount_unit)", "'major')")],
    tests: ["test/db/api/discount.test.ts", ...tests],
  },
];
