// Limits of webhooks, locks, retention and programs.
import { at, bounds, pins, type Limit } from "./limit.ts";

const config = "src/common/config.ts";
const timeOuts = bounds(
  "test/http/time-outs.test.ts",
  "A head has 10 s to arrive and a request 30 s; a connection is idle for 65 s and stalled for 60 s",
);
const schedule = [
  ["5", " seconds'"],
  ["5", " minutes'"],
  ["30", " minutes'"],
  ["2", " hours'"],
  ["5", " hours'"],
  ["10", " hours'"],
  ["14", " hours'"],
  ["20", " hours'"],
  ["24", " hours'"],
] as const;

export const operationLimits: Limit[] = [
  {
    name: "a lock without `lock_ttl_seconds`",
    value: "900 s",
    places: [at("src/commands/provisioning.ts", ".default(", "900", ")")],
    test: pins("test/db/limits.test.ts", "A lock lasts 900 s, or 1 to 604,800 s if its template says so"),
    said: [],
  },
  {
    name: "`lock_ttl_seconds`",
    value: "1 to 604,800",
    places: [
      at("src/commands/provisioning.ts", "lock_ttl_seconds: z.int().min(", "1", ")"),
      at("src/commands/provisioning.ts", ".max(", "604_800", ")"),
      at("db/migrations/004-batches.sql", "lock_ttl_seconds between ", "1", " and"),
      at("db/migrations/004-batches.sql", "lock_ttl_seconds between 1 and ", "604800", ")"),
    ],
    test: pins("test/db/limits.test.ts", "A lock lasts 900 s, or 1 to 604,800 s if its template says so"),
    said: ["1 to 604800; default 900"],
  },
  {
    name: "one webhook exchange",
    value: "15 s",
    places: [at("src/worker/webhook-sender.ts", "timeoutMs = ", "15_000", " }")],
    test: pins("test/worker/webhook-sender-faults.test.ts", "the whole exchange may take 15 s"),
    said: ["answers 2xx within 15 seconds", "is a 2xx within 15 seconds"],
  },
  {
    name: "what is read of a receiver's answer",
    value: "16 KiB",
    places: [at("src/worker/webhook-sender.ts", "maxResponseBytes = ", "16", " * 1024")],
    test: pins("test/worker/webhook-sender-faults.test.ts", "the 16,385th byte of an answer ends the exchange"),
    said: ["reads at most 16 KiB of your answer"],
  },
  {
    name: "pauses between attempts",
    value: "5 s, 5 min, 30 min, 2, 5, 10, 14, 20, 24 h, each ± 20 %",
    places: schedule.map(([number, unit]) => at("db/code/rules/webhook/compute_retry_delay.sql", "'", number, unit)),
    test: pins(
      "test/worker/tasks/deliver.test.ts",
      "retries follow the documented schedule, each pause up to a fifth shorter or longer",
    ),
    said: [
      "after 5 seconds, 5 minutes, 30 minutes, 2, 5, 10, 14, 20 and 24 hours",
      "up to 20 % sooner or later",
      "about three days",
      "missed an event for three days",
    ],
  },
  {
    name: "attempts of a delivery",
    value: "10",
    places: [],
    test: pins("test/worker/tasks/deliver-parked.test.ts", "a delivery is parked after the tenth attempt"),
    said: ["After ten attempts", "given up after ten attempts"],
  },
  {
    name: "requests to one subscriber at a time",
    value: "4",
    places: [at("src/worker/tasks/deliver.ts", "maxRequestsAtOnce = ", "4", ";")],
    test: pins("test/worker/tasks/deliver-lease.test.ts", "two workers drain 2,000 events after an outage"),
    said: ["up to four requests at the same time"],
  },
  {
    name: "the longest pause by `Retry-After`",
    value: "a day",
    places: [],
    test: pins("test/worker/webhook-sender.test.ts", '["86401", 86_400]'),
    said: [],
  },
  {
    name: "an old webhook secret signs",
    value: "for 24 hours",
    places: [
      at("db/code/jobs/claim_deliveries.sql", "interval '", "24", " hours'"),
      at("db/migrations/014-deliveries.sql", "v_now - interval '", "24", " hours'"),
    ],
    test: pins(
      "test/worker/tasks/deliver.test.ts",
      "a replaced secret signs for 24 h beside its successors, however often that happens",
    ),
    said: ["the old and the new one for 24 hours", "keeps signing for 24 hours"],
  },
  {
    name: "secrets of a webhook that sign",
    value: "10",
    places: [at("db/code/jobs/claim_deliveries.sql", "limit ", "9", ");")],
    test: pins("test/worker/tasks/deliver.test.ts", "ten secrets sign at most"),
    said: [],
  },
  {
    name: "a master key is in use after a batch ends; after a webhook secret is replaced",
    value: "for 7 days; for 24 hours",
    places: [
      at("db/code/rules/master_key/is_key_in_use.sql", "b.valid_to > now() - interval '", "7", " days'"),
      at("db/code/rules/master_key/is_key_in_use.sql", "x.valid_to > now() - interval '", "7", " days'"),
      at("db/code/rules/master_key/is_key_in_use.sql", "interval '", "24", " hours'"),
    ],
    test: pins("test/db/exact-moments.test.ts", "What ends now has ended, and what ends a microsecond later has not"),
    said: ["ended less than 7 days ago"],
  },
  {
    name: "request records are kept",
    value: "90 days",
    places: [at(config, 'count("REQUEST_RETENTION_DAYS", ', "90", ",")],
    test: pins(
      "test/worker/tasks/prune.test.ts",
      "request records and the delivery log are deleted after their retention",
    ),
    said: ["Records are kept for 90 days", "is kept (90 days by default)"],
  },
  {
    name: "the delivery log is kept",
    value: "30 days",
    places: [at(config, 'count("DELIVERY_LOG_RETENTION_DAYS", ', "30", ",")],
    test: pins(
      "test/worker/tasks/prune.test.ts",
      "request records and the delivery log are deleted after their retention",
    ),
    said: ["webhook attempts of the last 30 days"],
  },
  {
    name: "events are in the feed",
    value: "400 days",
    places: [at(config, 'count("FEED_RETENTION_DAYS", ', "400", ",")],
    test: pins(
      "test/common/config.test.ts",
      "without settings, every field has its default; an empty or blank value counts as absent",
    ),
    said: ["stay in the feed for 400 days"],
  },
  {
    name: "coupons of one `void_batch`",
    value: "10,000",
    places: [at("db/code/admin/void_batch.sql", "limit ", "10000", "")],
    test: pins("test/db/limits.test.ts", "One call of void_batch voids 10,000 coupons"),
    said: ["10,000 coupons per call", "voids up to 10,000 unused coupons"],
  },
  {
    name: "events of one replay",
    value: "10,000",
    places: [at("db/code/api/replay_events.sql", "c_limit    constant int := ", "10000", ";")],
    test: pins("test/db/api/replay-range.test.ts", "a range has at most 10,000 events"),
    said: ["A range has at most 10,000 events", "a replay has at most 10,000 events"],
  },
  {
    name: "coupon events of the tenant in the time of a replay (Variant A)",
    value: "ten times as many: 100,000",
    places: [at("db/code/rules/feed/find_recorded_events.sql", "for i in 1..", "10", " loop")],
    test: pins(
      "test/db/api/replay-range.test.ts",
      "a range reads at most ten times as many events of the feed as it may have",
    ),
    said: ["the whole tenant has more than 100,000 coupon events"],
  },
  {
    name: "waiting or parked events that a subscriber sees counted",
    value: "10,000",
    places: [
      at("db/code/rules/webhook/render_webhook.sql", "next_attempt_at\n        limit ", "10000", ") x) d"),
      at("db/code/rules/webhook/render_webhook.sql", "is not null\n        limit ", "10000", ") x) k"),
    ],
    test: pins("test/db/api/replay-range.test.ts", "get_webhook counts to 10,000, and no further"),
    said: ["Both count to 10,000"],
  },
  {
    name: "attempts that a subscriber sees",
    value: "100",
    places: [at("db/code/rules/webhook/render_attempts.sql", "limit ", "100", ")")],
    test: pins("test/db/api/webhook.test.ts", "get_webhook has the last 100 attempts and no secret"),
    said: ["`attempts` has the last 100 attempts"],
  },
  {
    name: "the lease of a batch",
    value: "30 s",
    places: [
      at("db/code/jobs/claim_batch.sql", "interval '", "30", " seconds'"),
      at("db/code/jobs/mint_chunk.sql", "interval '", "30", " seconds'"),
    ],
    test: pins("test/db/races/clock-times.test.ts", "The lease of a batch lasts 30 s from the end of the wait"),
    said: ["rests for at most 30 s"],
  },
  {
    name: "the lease of a subscriber",
    value: "60 s",
    places: [at("db/code/jobs/claim_deliveries.sql", "interval '", "60", " seconds'")],
    test: pins("test/db/races/clock-times.test.ts", "The lease of a subscriber lasts 60 s from the end of the wait"),
    said: ["that subscriber for at most 60 s", "resume after up to 60 s"],
  },
  {
    name: "a head arrives; a whole request arrives",
    value: "within 10 s; within 30 s",
    places: [
      at(config, 'count("HEADERS_TIMEOUT_SECONDS", ', "10", ","),
      at(config, 'count("REQUEST_TIMEOUT_SECONDS", ', "30", ","),
    ],
    test: timeOuts,
    said: ["a head has 10 seconds to arrive, a whole request 30"],
  },
  {
    name: "an idle connection stays open",
    value: "for 65 s",
    places: [at(config, 'count("KEEP_ALIVE_TIMEOUT_SECONDS", ', "65", ",")],
    test: timeOuts,
    said: ["closes an idle connection after 65 seconds", "(65 s)"],
  },
  {
    name: "a connection without progress stays open",
    value: "for 60 to 120 s",
    places: [at("src/server/connections.ts", "stalledAfterMs = ", "60_000", ";")],
    test: timeOuts,
    said: ["closes the connection 60 to 120 seconds later"],
  },
  {
    name: "known callers' requests of one connection at a time",
    value: "at most 300",
    places: [at("src/server/turns.ts", "mostPipelined = ", "300", ";")],
    test: pins("test/server/turns.test.ts", "A known caller that pipelines is answered in order, and is cut"),
    said: [],
  },
  {
    name: "answers that wait for clients to read, of all connections",
    value: "64 MiB",
    places: [at("src/server/connections.ts", "mostUnsentBytes = ", "64", " *")],
    test: bounds("test/server/turns.test.ts", "Answers that nobody reads are bounded"),
    said: ["answers that nobody reads are cut at 64 MiB"],
  },
  {
    name: "pieces of a chunked body",
    value: "1,000",
    places: [at("src/http/body.ts", "mostPieces = ", "1_000", ";")],
    test: pins("test/http/limits.test.ts", "A body arrives in at most 1,000 pieces"),
    said: [],
  },
  {
    name: "access keys that wait for their first lookup",
    value: "250",
    places: [at("src/gate/connections.ts", "mostWaitingLookups = ", "250", ";")],
    test: pins("test/gate/connections.test.ts", "Access keys that nobody has seen queue apart"),
    said: [],
  },
  {
    name: "an answer under way at a stop is cut",
    value: "after 5 s",
    places: [at("src/http/drain.ts", "cutAfterMs = ", "5_000", ";")],
    test: pins("test/http/time-outs.test.ts", "A stop cuts an answer that has not ended 5 s later"),
    said: ["takes longer than 5 s is cut"],
  },
];
