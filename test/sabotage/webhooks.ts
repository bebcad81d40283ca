// Guards of the webhook operations of subscribers, of test events and of what is said about failures.
import { edit, type Sabotage } from "./sabotage.ts";

const find = "db/code/rules/webhook/find_webhooks.sql";
const scope = ["test/db/api/webhook-scope.test.ts"];
const testEvents = ["test/db/api/test-webhook.test.ts"];

export const webhookGuards: Sabotage[] = [
  {
    name: "tenant in the lookup of a webhook",
    edits: [edit(find, "where w.tenant_id = p_call.tenant_id\n      and", "where")],
    tests: scope,
  },
  {
    name: "caller in the lookup of a webhook (Variant B)",
    edits: [edit(find, "when 'B' then w.party_id = p_call.caller_id", "when 'B' then true")],
    tests: scope,
  },
  {
    name: "party in the lookup of a webhook (Variant A)",
    edits: [edit(find, "coalesce(p_call.args ->> 'party', p.external_id)", "p.external_id")],
    tests: scope,
  },
  {
    name: "a replaced secret signs for 24 h",
    edits: [
      edit(
        "db/code/jobs/claim_deliveries.sql",
        "\n      and s.replaced_at > clock_timestamp() - interval '24 hours'",
        "",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "a replaced secret is kept when the next one is replaced too",
    mayThrow: true,
    edits: [
      edit(
        "db/migrations/014-deliveries.sql",
        "    and s.replaced_at <= v_now - interval '24 hours';",
        "    and true;",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "of many replaced secrets the latest sign",
    edits: [edit("db/code/jobs/claim_deliveries.sql", "order by s.replaced_at desc", "order by s.replaced_at")],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "Retry-After makes no pause of the schedule shorter",
    edits: [
      edit(
        "db/code/jobs/record_deliveries.sql",
        "greatest(\n        v_now + coalesce(rules.compute_retry_delay(r.attempt), interval '0'),\n" +
          "        v_now + make_interval(secs => r.retry_after_seconds))",
        "coalesce(\n        v_now + make_interval(secs => r.retry_after_seconds),\n" +
          "        v_now + rules.compute_retry_delay(r.attempt), v_now)",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "a webhook that is disabled leaves parked deliveries as they are",
    edits: [edit("db/code/rules/webhook/disable_webhook.sql", " and d.parked_at is null", "")],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "a webhook that is disabled again keeps its time",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "coalesce(w.disabled_at, clock_timestamp())",
        "clock_timestamp()",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "a replay begins without an error",
    edits: [edit("db/code/rules/webhook/replay_deliveries.sql", " last_error = null,", "")],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  ...[
    ["success", "    and r.is_taken;", "    and r.is_taken and v_is_holder;"] as const,
    ["test event", "and d.event_id = r.event_id;", "and d.event_id = r.event_id and v_is_holder;"] as const,
  ].map(([what, from, to]) => ({
    name: `gone worker: its late ${what} counts`,
    edits: [edit("db/code/jobs/record_deliveries.sql", from, to)],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  })),
  {
    name: "party of an event that is replayed",
    edits: [edit("db/code/api/replay_events.sql", "        and e.party_id = v_parties[1]\n", "")],
    tests: scope,
  },
  ...["api/replay_events", "rules/feed/find_recorded_events"].map((file) => ({
    name: `an event is sequenced before it is replayed (${file.split("/").at(-1)})`,
    edits: [edit(`db/code/${file}.sql`, "from rules.sequenced_event e", "from rules.event e")],
    tests: ["test/db/api/webhook.test.ts"],
  })),
  {
    name: "an attempt that was answered 204 has no reason",
    edits: [
      edit("db/code/rules/webhook/render_attempts.sql", "a.http_status between 200 and 299", "a.http_status = 200"),
    ],
    tests: ["test/db/api/webhook.test.ts"],
  },
  {
    name: "party of coupon events in a range",
    edits: [edit("db/code/rules/feed/find_recorded_events.sql", "f.party_id = p_party_id and ", "")],
    tests: scope,
  },
  {
    name: "party of other events in a range",
    edits: [edit("db/code/rules/feed/find_recorded_events.sql", "      and e.party_id = p_party_id\n", "")],
    tests: scope,
  },
  {
    name: "largest replay",
    edits: [
      edit(
        "db/code/rules/feed/find_recorded_events.sql",
        "    if cardinality(v_events) > p_limit then\n      return null;\n    elsif ",
        "    if ",
      ),
    ],
    tests: ["test/db/api/replay-range.test.ts"],
  },
  {
    name: "events that a replay reads",
    edits: [edit("db/code/rules/feed/find_recorded_events.sql", "for i in 1..10 loop", "for i in 1..100 loop")],
    tests: ["test/db/api/replay-range.test.ts"],
  },
  {
    name: "late events of a range",
    edits: [
      edit(
        "db/code/rules/feed/find_recorded_events.sql",
        "v_found.earliest >= p_to + interval '5 seconds'",
        "v_found.earliest >= p_to",
      ),
    ],
    tests: ["test/db/api/replay-range.test.ts"],
  },
  {
    name: "one test event of a type waits",
    behind: "the key of core.test_delivery, as a 500",
    edits: [
      edit(
        "db/code/rules/webhook/create_test_delivery.sql",
        "on conflict (tenant_id, party_id, event_type) do update\n" +
          "  set event_id = excluded.event_id, body = excluded.body, created_at = excluded.created_at;",
        ";",
      ),
    ],
    tests: testEvents,
  },
  {
    name: "a newer test event has its own body",
    edits: [edit("db/code/rules/webhook/create_test_delivery.sql", "body = excluded.body, ", "")],
    tests: testEvents,
  },
  {
    name: "a test event is tried once",
    edits: [
      edit(
        "db/code/jobs/record_deliveries.sql",
        "d.party_id = p_party_id and d.event_id = r.event_id;",
        "d.party_id = p_party_id and d.event_id = r.event_id and false;",
      ),
    ],
    tests: testEvents,
  },
  {
    name: "a test event is marked",
    edits: [edit("src/worker/webhook-sender.ts", '...(isTest && { "webhook-test": "true" }),', "")],
    tests: testEvents,
  },
  {
    name: "a disabled webhook gets no test",
    edits: [
      edit("db/code/api/test_webhook.sql", "if rules.is_webhook_disabled", "if false and rules.is_webhook_disabled"),
    ],
    tests: testEvents,
  },
  {
    name: "a disabled webhook gets no replay",
    edits: [
      edit("db/code/api/replay_events.sql", "if rules.is_webhook_disabled", "if false and rules.is_webhook_disabled"),
    ],
    tests: testEvents,
  },
  {
    name: "a webhook that is disabled drops waiting tests",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "  delete from core.test_delivery d\n  where d.tenant_id = p_tenant_id and d.party_id = p_party_id;\n",
        "",
      ),
    ],
    tests: testEvents,
  },
  {
    name: "a disabled webhook drops its own tests only",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "from core.test_delivery d\n  where d.tenant_id = p_tenant_id and d.party_id = p_party_id;",
        "from core.test_delivery d\n  where d.tenant_id = p_tenant_id;",
      ),
    ],
    tests: testEvents,
  },
  {
    name: "a webhook call waits for the worker",
    edits: [edit("db/code/rules/webhook/hold_webhook.sql", "for no key update skip locked;", ";")],
    tests: ["test/db/api/webhook.test.ts"],
  },
  {
    name: "the verification of listen",
    edits: [edit("src/commands/webhook-listener.ts", "    return error.message;", "    return null;")],
    tests: ["test/commands/webhook-listener.test.ts"],
  },
  {
    name: "WEBHOOK_ALLOW without zones",
    edits: [edit("src/common/config.ts", '      !address.includes("%") &&\n', "")],
    tests: ["test/common/config.test.ts"],
  },
  {
    name: "WEBHOOK_ALLOW with IPv4 in IPv6 does not allow all of IPv4",
    edits: [edit("src/common/config.ts", "isMapped(address) ? 96 : 0", "isMapped(address) ? 95 : 0")],
    tests: ["test/common/config.test.ts"],
  },
];
