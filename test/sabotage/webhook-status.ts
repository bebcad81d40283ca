// Guards of what a subscriber sees of its webhook, and of replays.
import { edit, type Sabotage } from "./sabotage.ts";

const webhook = "db/code/rules/webhook/render_webhook.sql";
const attempts = "db/code/rules/webhook/render_attempts.sql";
const replay = "db/code/api/replay_events.sql";
const range = "db/code/admin/replay_range.sql";
const disabled = "when w.disabled_at is not null then 'disabled'";
const paused = "when w.paused_until > clock_timestamp() then 'paused'";
const seen = ["test/db/api/webhook.test.ts"];
const audited = ["test/db/admin/feeds.test.ts"];

export const webhookStatusGuards: Sabotage[] = [
  {
    name: "a webhook whose pause is over is not paused",
    edits: [edit(webhook, "w.paused_until > clock_timestamp()", "w.paused_until is not null")],
    tests: seen,
  },
  {
    name: "a disabled webhook is not shown as paused",
    edits: [edit(webhook, `${disabled}\n           ${paused}`, `${paused}\n           ${disabled}`)],
    tests: seen,
  },
  {
    name: "a pause that is over delays no attempt",
    edits: [
      edit(attempts, "greatest(d.next_attempt_at, w.paused_until)", "coalesce(w.paused_until, d.next_attempt_at)"),
    ],
    tests: seen,
  },
  {
    name: "an unknown event is refused before a disabled webhook",
    edits: [
      edit(
        replay,
        "  -- decide\n",
        "  if rules.is_webhook_disabled(p_call.tenant_id, v_parties[1]) then\n" +
          "    return rules.refuse(p_call, 'WEBHOOK_DISABLED');\n  end if;\n",
      ),
    ],
    tests: ["test/db/api/test-webhook.test.ts"],
  },
  {
    name: "the audit of a replay tells its begin from its end",
    edits: [edit(range, "'from', p_from, 'to', p_to", "'from', p_to, 'to', p_from")],
    tests: audited,
  },
  {
    name: "the audit of a replay has its begin",
    edits: [edit(range, "'from', p_from, ", "")],
    tests: audited,
  },
  {
    name: "the audit of a replay has its end",
    edits: [edit(range, "'to', p_to, ", "")],
    tests: audited,
  },
];
