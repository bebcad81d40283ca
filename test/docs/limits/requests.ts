// Limits of requests.
import { at, bounds, pins, type Limit } from "./limit.ts";

const lengths = pins("test/http/limits.test.ts", "An id or text has from 1 to its longest number of characters");
const headers = "src/crypto/request-signature.ts";
const redemptions = "db/migrations/006-redemptions.sql";
const route = (name: string) => `src/http/routes/${name}.ts`;

export const requestLimits: Limit[] = [
  {
    name: "clock difference of a signed request",
    value: "300 s",
    places: [at(headers, "const windowSeconds = ", "300", ";")],
    test: pins("test/crypto/request-signature.test.ts", "the window is 300 seconds in both directions"),
    said: [
      "at most 300 seconds off",
      "more than 300 seconds off",
      "Exactly 300 seconds off",
      "a timestamp more than 300 s off",
      "a timestamp within 300 s",
    ],
  },
  {
    name: "length of a timestamp, a nonce and a signature",
    value: "10; 16 to 64; 64 characters",
    places: [
      at(headers, "/^[0-9]{", "10", "}$/"),
      at(headers, "{", "16", ",64}$/"),
      at(headers, "{16,", "64", "}$/"),
      at(headers, "/^[0-9a-f]{", "64", "}$/"),
    ],
    test: pins("test/crypto/request-signature.test.ts", "headers are accepted only if all are present and well-formed"),
    said: ["Unix seconds (10 digits)", "16 to 64 characters of", "64 lower-case hexadecimal digits"],
  },
  {
    name: "a nonce is refused",
    value: "for 11 minutes",
    places: [at("db/code/rules/request/spend_nonces.sql", "interval '", "11", " minutes'")],
    test: pins("test/db/limits.test.ts", "A nonce is refused for 11 minutes, and accepted afterwards"),
    said: [
      "remembered for 11 minutes",
      "accepted once within 11 minutes",
      "no earlier than 11 minutes after the old",
      "wait 11 minutes before you start",
      "and 11 minutes after the old `serve` stopped",
    ],
  },
  {
    name: "a nonce is kept",
    value: "for 11 minutes",
    places: [at("db/code/jobs/prune_nonces.sql", "interval '", "11", " minutes'")],
    test: bounds("test/worker/work.test.ts", "nonces are deleted after 11 minutes, not earlier"),
    said: [],
  },
  {
    name: "`request_id`",
    value: "1 to 128 characters",
    places: [at("src/http/fields.ts", "requestId = printable(", "128", ")")],
    test: lengths,
    said: ["1 to 128 printable characters"],
  },
  {
    name: "`idempotency-key`",
    value: "1 to 128 characters",
    places: [],
    test: pins("test/http/fields.test.ts", "An idempotency-key has 1 to 128 printable characters"),
    said: [],
  },
  {
    name: "`order_id`, `sku`",
    value: "1 to 128 characters",
    places: [
      at(route("redemption-input"), "order_id: printable(", "128", ")"),
      at(route("redemption-input"), "sku: printable(", "128", ")"),
    ],
    test: lengths,
    said: [],
  },
  {
    name: "IDs",
    value: "1 to 64 characters",
    places: [at("src/http/fields.ts", "externalId = printable(", "64", ")")],
    test: lengths,
    said: ['"ID" means text of 1 to 64 characters', "IDs, `store`, `terminal` | 64 characters"],
  },
  {
    name: "`store`, `terminal`",
    value: "64 characters",
    places: [at("src/http/fields.ts", "length <= ", "64", ",")],
    test: pins("test/http/limits.test.ts", "A store and a terminal have at most 64 characters after trimming"),
    said: ["free text, at most 64 characters"],
  },
  {
    name: "`reason`",
    value: "500 characters",
    places: [at(route("void"), "text(", "500", ")"), at(route("reverse"), "text(", "500", ")")],
    test: lengths,
    said: ["text, at most 500 characters", "`reason` | 500 characters"],
  },
  {
    name: "`store`, `terminal`; `order_id`; `reason` of a reversal, in the database",
    value: "64; 128; 500 characters",
    places: [
      at(redemptions, "check (length(value) <= ", "64", ")"),
      at(redemptions, "check (length(value) <= ", "128", ")"),
      at(redemptions, "check (length(reason) <= ", "500", ")"),
    ],
    test: pins(
      "test/db/limits.test.ts",
      "The longest texts of a redemption and its reversal are stored, and no longer ones",
    ),
    said: [],
  },
  {
    name: "`total_count`",
    value: "1 to 10,000,000",
    places: [
      at(route("create-batch"), ".min(", "1", ", total)"),
      at(route("create-batch"), ".max(", "10_000_000", ", total)"),
    ],
    test: pins("test/http/limits.test.ts", "A batch has 1 to 10,000,000 coupons"),
    said: ["integer, 1 to 10,000,000", "`total_count` | 1 to 10,000,000"],
  },
  {
    name: "`total_count` in the database",
    value: "1 to 10,000,000",
    places: [
      at("db/migrations/004-batches.sql", "total_count between ", "1", " and"),
      at("db/migrations/004-batches.sql", "total_count between 1 and ", "10000000", ")"),
    ],
    test: pins("test/db/limits.test.ts", "A batch in psql has 1 to 10,000,000 coupons too"),
    said: [],
  },
  {
    name: "amounts",
    value: "0 or more, below 10^12",
    places: [],
    test: pins(
      "test/db/limits.test.ts",
      "An amount is 0 or more and below 10^12, whatever the HTTP layer lets through",
    ),
    said: ["at least 0 and below 10^12", "0 or more, below 10^12"],
  },
  {
    name: "a code",
    value: "16 characters",
    places: [],
    test: pins("test/http/limits.test.ts", "A code has 16 characters"),
    said: ["**Codes** are 16 characters", "A code has 16 characters", "Each row of 16 characters"],
  },
  {
    name: "body",
    value: "64 KiB",
    places: [at("src/common/config.ts", "bodyBytes: ", "65_536", ",")],
    test: pins("test/http/precedence.test.ts", "A body above 64 KiB is 413 before any other check"),
    said: ["The body is larger than 64 KiB", "body | 64 KiB"],
  },
  {
    name: "target, header names and values together",
    value: "less than 16 KiB",
    places: [at("src/common/config.ts", "headerBytes: ", "16_384", ",")],
    test: pins("test/http/limits.test.ts", "A head has less than 16 KiB of target, names and values"),
    said: ["headers above 16 KiB"],
  },
  {
    name: "levels of a body",
    value: "32",
    places: [at("src/http/strict-json.ts", "const maxDepth = ", "32", ";")],
    test: pins(
      "test/http/strict-json.test.ts",
      "A body has at most 32 levels, because later steps visit it by recursion",
    ),
    said: ["arrays in a body | 32 |"],
  },
  {
    name: "issues in one 400",
    value: "20",
    places: [at("src/http/issues.ts", "maxIssues = ", "20", ";")],
    test: pins("test/http/limits.test.ts", "A 400 lists up to 20 issues"),
    said: ["issues listed in one 400 | 20 |"],
  },
  {
    name: "places of a text that can be a code",
    value: "8,000",
    places: [at("src/crypto/find-code.ts", "defaultMostCandidates = ", "8_000", ";")],
    test: pins("test/crypto/find-code.test.ts", "candidates(8_001)"),
    said: ["at most 8,000 places"],
  },
  {
    name: "unknown codes of one credential",
    value: "60 in a minute",
    places: [at("src/common/config.ts", 'count("UNKNOWN_CODE_LIMIT", ', "60", ",")],
    test: pins("test/http/limits.test.ts", "The 61st wrong code of a minute is refused"),
    said: ["unknown codes of one credential | 60 in a minute", "allows 60 in 60 seconds"],
  },
  {
    name: "an equal request waits for the first one",
    value: "2 s",
    places: [at("src/serve.ts", "lockTimeoutMs: ", "2_000", ",")],
    test: bounds(
      "test/http/service.test.ts",
      "A call that waits for a locked row delays no other coupon, and ends in time",
    ),
    said: ["After 2 seconds it returns 409"],
  },
  {
    name: "an answer comes",
    value: "within 4 s",
    places: [at("src/http/app.ts", "answerWithinMs = ", "3_500", ";")],
    test: bounds("test/http/service.test.ts", "Without its database the service answers 503 in time"),
    said: ["Every answer comes within 4 seconds", "Every answer comes within 4 s;"],
  },
  {
    name: "entries of a page",
    value: "1 to 1,000",
    places: [at("src/http/fields.ts", "Number(value) <= ", "1_000", ",")],
    test: pins(
      "test/http/events.test.ts",
      "A cursor that is not from this feed is 400, and so is a limit outside 1 to 1000",
    ),
    said: ["1 to 1000, by default 100", "1 to 1000 entries, by default 100"],
  },
  {
    name: "events of a page without `limit`",
    value: "100",
    places: [at("db/code/api/pull_events.sql", "::int, ", "100", ")")],
    test: pins("test/http/events.test.ts", "A page has 100 events by default"),
    said: [],
  },
];
