// Bodies, generated: each operation's, with one thing wrong with it, or anything at all.
import fc from "fast-check";
import t from "tap";
import { findUndocumented, isRecorded } from "../support/documented.ts";
import { changedTables } from "../support/inspect.ts";
import type { Reply } from "../support/client.ts";
import { newRequestId, startService } from "../support/service.ts";
import { readState } from "../support/state.ts";

// JSON texts, and what looks like one.
const literal = fc.oneof(
  fc.constantFrom(
    "1e400",
    "-1e400",
    "1e-400",
    "NaN",
    "Infinity",
    "-0",
    "0.1e1",
    "00",
    "1.",
    "9007199254740993",
    "123456789012345678901234567890.5",
    "1e12",
    "999999999999.999",
    "null",
    "true",
    "{}",
    "[]",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u202e"',
    '"\\u200b"',
    '"\\ufeff"',
    '"e\\u0301"',
    '"\u{10ffff}"',
    '"__proto__"',
    '{"__proto__":{"polluted":1}}',
    '{"toString":1}',
    '"constructor"',
    '"\' or 1=1 --"',
    '"%00"',
    '"\\\\x00"',
    "[1e308,1e308]",
    '{"items":[{"sku":"A1","amount":1e308}]}',
    '{"items":[{}]}',
    '{"items":[{"amount":999999999999.99},{"amount":999999999999.99}]}',
  ),
  fc
    .constantFrom(10, 1_000, 30_000)
    .chain((depth) =>
      fc
        .constantFrom(["[", "]"], ['{"a":', "}"])
        .map(
          ([open, close]) =>
            `${open!.repeat(Math.min(depth, Math.floor(60_000 / (open!.length + 1))))}1${close!.repeat(Math.min(depth, Math.floor(60_000 / (open!.length + 1))))}`,
        ),
    ),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 200 }).map((text) => JSON.stringify(text)),
  fc.double().map(String),
  fc.float({ min: 0, max: 1_000, noNaN: true }).map(String),
);
const strangeName = fc.constantFrom(
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "request_id ",
  "Coupon",
  "store",
  "terminal",
  "redemption_context",
  "reason",
  "",
);

type Body = Record<string, unknown>;
type Spoil = {
  at: number;
  how: "replace" | "remove" | "add" | "twice" | "poison" | "bytes" | "cut" | "none" | "whole";
  literal: string;
  name: string;
  byte: number;
};
const spoil: fc.Arbitrary<Spoil> = fc.record({
  at: fc.nat(400),
  how: fc.constantFrom(
    "replace",
    "replace",
    "replace",
    "remove",
    "add",
    "twice",
    "poison",
    "bytes",
    "cut",
    "none",
    "whole",
  ),
  literal,
  name: strangeName,
  byte: fc.nat(255),
});

function toBytes(body: Body, { at, how, literal, name, byte }: Spoil): Buffer {
  const fields = Object.entries(body).map(([field, value]) => [JSON.stringify(field), JSON.stringify(value)]);
  const chosen = fields[at % fields.length]!;
  if (how === "whole") return Buffer.from(literal);
  if (how === "replace") chosen[1] = literal;
  if (how === "remove") fields.splice(at % fields.length, 1);
  if (how === "add") fields.push([JSON.stringify(name), literal]);
  if (how === "twice") fields.push([byte % 2 === 0 ? chosen[0]! : chosen[0]!.replace("e", "\\u0065"), literal]);
  // What PostgreSQL cannot store, in a text that is right otherwise.
  if (how === "poison") chosen[1] = `"a${["\\u0000", "\\ud800", "\\udc00\\ud800"][byte % 3]}"`;
  const bytes = Buffer.from(`{${fields.map((pair) => pair.join(":")).join(",")}}`);
  const place = at % bytes.length;
  if (how === "bytes")
    return Buffer.concat([bytes.subarray(0, place), Buffer.from([byte]), bytes.subarray(place + (byte % 2))]);
  return how === "cut" ? bytes.subarray(0, place) : bytes;
}

t.test(
  "whatever stands in a body, the answer is a documented one, a 400 changes nothing, and what is recorded is replayed",
  async (t) => {
    const service = await startService(t, undefined, {}, { unknownCodesPerMinute: null });
    const callers = [
      {
        by: service.as("ak_a"),
        merchant: "mch_a",
        template: "tpl_percent",
        batch: await service.makeBatch(service.as("ak_a"), "tpl_percent", 30),
      },
      {
        by: service.as("ak_pos"),
        merchant: "mch_b",
        template: "tpl_b",
        batch: await service.makeBatch(service.as("ak_maker"), "tpl_b", 30),
      },
    ];
    const makers = [service.as("ak_a"), service.as("ak_maker")];
    const paths = ["lock", "redeem", "confirm", "cancel", "void", "query"]
      .map((name) => `/v1/coupons/${name}`)
      .concat("/v1/redemptions/reverse", "/v1/batches", "/v1/batches/allocate");
    let locked = { request_id: "none", redemption: `red_${"0".repeat(26)}` };

    function bodyOf(path: string, caller: number, number: number): Body {
      const { merchant, template, batch } = callers[caller]!;
      const coupon = batch.codes[number % batch.codes.length];
      const request_id = newRequestId();
      switch (path) {
        case "/v1/coupons/lock":
        case "/v1/coupons/redeem":
          return {
            request_id,
            coupon,
            merchant,
            order_amount: 20,
            currency: "EUR",
            order_id: "o",
            store: "S1",
            terminal: "T1",
            ...(caller === 0 && { redemption_context: { items: [{ sku: "A1", quantity: 1, amount: 20 }] } }),
          };
        case "/v1/coupons/confirm":
          return { request_id, lock_request_id: locked.request_id, coupon, merchant };
        case "/v1/coupons/cancel":
          return { request_id, lock_request_id: locked.request_id, coupon };
        case "/v1/coupons/void":
          return { request_id, coupon, merchant, reason: "r" };
        case "/v1/coupons/query":
          return { request_id, coupon, merchant };
        case "/v1/redemptions/reverse":
          return { request_id, redemption: locked.redemption, reason: "r" };
        case "/v1/batches":
          return { request_id, template, total_count: 2, distributor: caller === 0 ? "pty_a" : "pty_dist" };
        default:
          return { request_id, batch: batch.id };
      }
    }

    const seen: Record<string, number> = {};
    const refused: (() => Promise<Reply>)[] = [];
    const isRefused = ({ status, json }: Reply) => status === 400 || json.code === "COUPON_CODE_INVALID";
    const until = performance.now() + 15_000;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...paths),
        fc.nat(1),
        fc.nat(29),
        spoil,
        async (path, caller, number, spoiled) => {
          if (performance.now() > until) return;
          const body = bodyOf(path, caller, number);
          const bytes = toBytes(body, spoiled);
          const send = () => (path.startsWith("/v1/batches") ? makers[caller]! : callers[caller]!.by).post(path, bytes);
          const startedAt = performance.now();
          const answer = await send();
          const problem = findUndocumented(answer, performance.now() - startedAt);
          if (problem !== null) throw new Error(problem);
          // Each reader would take another of the two.
          if (["twice", "poison", "cut"].includes(spoiled.how) && answer.status !== 400)
            throw new Error(`${spoiled.how}: ${answer.status} ${answer.text}`);
          seen[answer.status] = (seen[answer.status] ?? 0) + 1;
          if (isRefused(answer)) {
            refused.push(send);
            return;
          }
          if (path !== "/v1/coupons/query" && isRecorded(answer)) {
            const again = await send();
            if (
              again.text !== answer.text ||
              again.status !== answer.status ||
              again.headers["idempotent-replayed"] !== "true"
            )
              throw new Error(`again: ${again.status} ${again.text}`);
          }
          if (answer.status === 200 && path === "/v1/coupons/lock")
            locked = { request_id: body["request_id"] as string, redemption: answer.json.redemption };
        },
      ),
      { numRuns: 800 },
    );
    t.comment(JSON.stringify(seen));
    for (const status of [200, 400, 409]) t.ok(seen[status], `some of ${status}`);

    const before = await readState(service.owner, { withRequests: true });
    for (const send of refused) if (!isRefused(await send())) t.fail("a refusal is none any more");
    t.strictSame(
      changedTables(before, await readState(service.owner, { withRequests: true })),
      [],
      `${refused.length} refusals`,
    );
  },
);
