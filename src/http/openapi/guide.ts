// The description at the top of a document, in Markdown.
import type { Variant } from "../../gate/gate.ts";

const caller: Record<Variant, string> = {
  A: "This document is for tenants of Variant A: a credential identifies the tenant.",
  B: "This document is for tenants of Variant B: a credential identifies one party of the tenant.",
};

const signing = `## Sign a request

Every request under \`/v1\` carries the headers \`x-svc-access-key\`, \`x-svc-timestamp\`, \`x-svc-nonce\`
and \`x-svc-signature\`. The signature is the HMAC-SHA256 of five lines in lower-case hexadecimal, keyed with the UTF-8
bytes of your secret. Each line ends with a line feed, the last one too:

1. the method, such as \`POST\`
2. the request target exactly as it is on the request line: the path, and \`?\` with the query if there is one
3. the value of \`x-svc-timestamp\`
4. the value of \`x-svc-nonce\`
5. the SHA-256 of the raw body bytes in lower-case hexadecimal; of zero bytes if there is no body

HEAD works wherever GET does. Sign it with the method \`HEAD\`.`;

const repeating = `## Repeat a request

Every write has a \`request_id\` that you choose. Repeat a write with the same \`request_id\` and the same body until
you get an answer, and sign each attempt anew. The service acts once and returns the same bytes to each repeat, with
the header \`Idempotent-Replayed: true\`.`;

const errors = `## Errors

Decide by \`code\`. \`message\` is for people and can change. If several errors apply, the first in the order of the
documentation is returned. What requests get that reach no operation is the \`default\` answer of every operation.

New fields may be added to answers and events: ignore fields that you do not know. New codes may be added too: decide
by the status then.`;

const exceptions: Record<Variant, string[]> = {
  A: [
    "`party` is missing although the tenant has several webhooks.",
    "The length of `store` and `terminal` counts without unprintable characters, after trimming and Unicode " +
      "normalization (NFC). So longer text may be accepted, and text that grows by normalization may be refused.",
  ],
  B: [],
};

const listExceptions = (variant: Variant) => `## What the schemas cannot say

A request that fits its schema is still a 400 \`INVALID_REQUEST\` in these cases:

${[
  "Text has a character that is not printable: a control, a line break, a mark that turns the direction of writing " +
    "(such as U+202E), an invisible character that joins nothing (such as U+200B), or private use. Joiners and soft " +
    "hyphens (U+200C, U+200D, U+00AD) are printable. `store` and `terminal` of Variant A drop such characters.",
  "`coupon` is not 16 characters of Crockford Base32 without blanks, dashes, control and invisible characters.",
  "A field name, or text other than `coupon`, contains `\\u0000` or half of a surrogate pair.",
  "Text other than `coupon` contains a coupon code of this service, alone or among other words. So do field names, " +
    "the path, the query, `idempotency-key` and `x-svc-nonce`.",
  "A body has a duplicate key, more than 32 levels, or is not UTF-8.",
  "A GET has a body. A query has an unknown or a repeated parameter.",
  "`limit` is not written as plain digits, such as `1e2` or `+5`.",
  "A date has the year 0000.",
  "`from` or `to` of `replay_events` is before 1970 or after 9998, or `to` is not later than `from`, or there are " +
    "more than 10,000 events between them.",
  "`cursor` of `pull_events`, `list_redemptions` or `list_batches` is not the `next_cursor` of an earlier page.",
  "`list_redemptions` has `from`, `to`, `cursor` or `limit` beside `order_id`, or its `to` is not later than `from`.",
  "An amount has more decimals than its currency.",
  ...exceptions[variant],
]
  .map((line) => `- ${line}`)
  .join("\n")}

Blank text counts as absent in \`store\`, \`terminal\`, \`order_id\`, \`currency\` and \`reason\`, however long.

Other answers than 400:

- A missing or malformed authentication header is a 401 with \`details.issues\`.
- A well-formed \`coupon\` that this service never made is a 422 \`COUPON_CODE_INVALID\`.
- A malformed \`date\` or \`kind\` in the path of a download is a 404.
- A body over 64 KiB is a 413; a body of another content type is a 415.`;

export function writeGuide(variant: Variant): string {
  const parts = [
    `Issue, distribute and redeem coupons. ${caller[variant]}`,
    signing,
    repeating,
    errors,
    listExceptions(variant),
  ];
  return `${parts.join("\n\n")}\n`;
}
