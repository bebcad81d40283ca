// Attempts on deliveries.
import { insertCopy, together, update, type Attempts } from "./statements.ts";

const insertOtherWebhook = together(
  insertCopy("party", "party_id = :distributor", { party_id: "2147483647", external_id: "'pty_other'" }),
  insertCopy("webhook", "true", { party_id: "2147483647" }),
);
const deleteAfterAttempt = (event: string, status: number, at: string) =>
  together(
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, http_status, duration_ms, attempted_at)
     select tenant_id, party_id, ${event}, 1, ${status}, 1, ${at} from core.delivery`,
    "delete from core.delivery",
  );

export const deliveryAttempts: Attempts = {
  delivery_is_of_an_event: {
    "a delivery of an unknown event": insertCopy("delivery", "true", { event_id: "gen_random_uuid()" }),
    "a delivery of a redemption with another number": insertCopy("delivery", "true", { event_id: ":unposted" }),
    "a delivery of a business day with another number": insertCopy("delivery", "true", {
      event_id: "(select e.event_id from core.event e where e.business_date is not null)",
    }),
    "a delivery of a redemption to another party": together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select entry_id from core.ledger_entry)", { party_id: "2147483647" }),
    ),
    "a delivery of a batch to another party": together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select e.event_id from core.event e)", { party_id: "2147483647" }),
    ),
  },
  delivery_keeps_its_event: {
    "a delivery of another event": update("delivery", "event_seq = event_seq + 1"),
    "all deliveries truncated": "truncate core.delivery",
  },
  delivery_is_kept_until_accepted: {
    "deliveries deleted": "delete from core.delivery",
    "deliveries deleted after a failure": deleteAfterAttempt("event_id", 500, "now()"),
    "deliveries deleted after an earlier success": deleteAfterAttempt("event_id", 200, "now() - interval '1 second'"),
    "deliveries deleted after a success of another event": deleteAfterAttempt("gen_random_uuid()", 200, "now()"),
  },
  attempt_count_is_0_to_10: { "an eleventh attempt": update("delivery", "attempt_count = 11") },
  test_delivery_tenant_id_party_id_fkey: {
    "a test for a party without a webhook": insertCopy("test_delivery", "true", { party_id: "2147483647" }),
  },
  test_event_type_is_known: { "a test of a type that does not exist": update("test_delivery", "event_type = 'x'") },
};
