// Generated bodies: the valid body of an operation with one thing wrong, or anything at all.
import fc from "fast-check";
import t from "tap";
import { findUndocumented, isRecorded } from "../support/documented.ts";
import { changedTables } from "../support/inspect.ts";
import type { Client, Reply } from "../support/client.ts";
import { isReplay } from "../support/replays.ts";
import { newRequestId, startService, type Batch, type Running } from "../support/service.ts";
import { readState } from "../support/state.ts";

// JSON texts, and texts that look like JSON.
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
  fc.constantFrom(10, 1_000, 30_000).chain((depth) =>
    fc.constantFrom(["[", "]"], ['{"a":', "}"]).map(([open, close]) => {
      const most = Math.min(depth, Math.floor(60_000 / (open!.length + 1)));
      return `${open!.repeat(most)}1${close!.repeat(most)}`;
    }),
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
  // A text with a character that PostgreSQL cannot store.
  if (how === "poison") chosen[1] = `"a${["\\u0000", "\\ud800", "\\udc00\\ud800"][byte % 3]}"`;
  const bytes = Buffer.from(`{${fields.map((pair) => pair.join(":")).join(",")}}`);
  const place = at % bytes.length;
  if (how === "bytes")
    return Buffer.concat([bytes.subarray(0, place), Buffer.from([byte]), bytes.subarray(place + (byte % 2))]);
  return how === "cut" ? bytes.subarray(0, place) : bytes;
}

type Caller = { by: Client; maker: Client; merchant: string; template: string; distributor: string; batch: Batch };
type Locked = { request_id: string; redemption: string };

async function makeCallers(service: Running): Promise<Caller[]> {
  const [a, pos, maker] = ["ak_a", "ak_pos", "ak_maker"].map(service.as) as [Client, Client, Client];
  return [
    {
      by: a,
      maker: a,
      merchant: "mch_a",
      template: "tpl_percent",
      distributor: "pty_a",
      batch: await service.makeBatch(a, "tpl_percent", 30),
    },
    {
      by: pos,
      maker,
      merchant: "mch_b",
      template: "tpl_b",
      distributor: "pty_dist",
      batch: await service.makeBatch(maker, "tpl_b", 30),
    },
  ];
}

const paths = ["lock", "redeem", "confirm", "cancel", "void", "query"]
  .map((name) => `/v1/coupons/${name}`)
  .concat("/v1/redemptions/reverse", "/v1/batches", "/v1/batches/allocate");

// A valid body. confirm, cancel and reverse name the last lock.
function bodyOf(path: string, { merchant, template, distributor, batch }: Caller, number: number, last: Locked): Body {
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
        ...(merchant === "mch_a" && { redemption_context: { items: [{ sku: "A1", quantity: 1, amount: 20 }] } }),
      };
    case "/v1/coupons/confirm":
      return { request_id, lock_request_id: last.request_id, coupon, merchant };
    case "/v1/coupons/cancel":
      return { request_id, lock_request_id: last.request_id, coupon };
    case "/v1/coupons/void":
      return { request_id, coupon, merchant, reason: "r" };
    case "/v1/coupons/query":
      return { request_id, coupon, merchant };
    case "/v1/redemptions/reverse":
      return { request_id, redemption: last.redemption, reason: "r" };
    case "/v1/batches":
      return { request_id, template, total_count: 2, distributor };
    default:
      return { request_id, batch: batch.id };
  }
}

const isRefused = ({ status, json }: Reply) => status === 400 || json.code === "COUPON_CODE_INVALID";

// Throws unless the answer is documented, ambiguous bodies are refused, and a recorded answer is replayed.
async function checkAnswer(path: string, { how }: Spoil, answer: Reply, afterMs: number, send: () => Promise<Reply>) {
  const problem = findUndocumented(answer, afterMs);
  if (problem !== null) throw new Error(problem);
  // Two parsers could read such a body differently.
  if (["twice", "poison", "cut"].includes(how) && answer.status !== 400)
    throw new Error(`${how}: ${answer.status} ${answer.text}`);
  if (isRefused(answer) || path === "/v1/coupons/query" || !isRecorded(answer)) return;
  const again = await send();
  if (again.text !== answer.text || again.status !== answer.status || !isReplay(again))
    throw new Error(`again: ${again.status} ${again.text}`);
}

t.test("Any body gets a documented answer; refusals change nothing, and recorded answers are replayed", async (t) => {
  const service = await startService(t, undefined, {}, { unknownCodesPerMinute: null });
  const callers = await makeCallers(service);
  let last = { request_id: "none", redemption: `red_${"0".repeat(26)}` };
  const seen: Record<string, number> = {};
  const refused: (() => Promise<Reply>)[] = [];
  const until = performance.now() + 15_000;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.constantFrom(...callers),
      fc.nat(29),
      spoil,
      async (path, caller, number, spoiled) => {
        if (performance.now() > until) return;
        const body = bodyOf(path, caller, number, last);
        const bytes = toBytes(body, spoiled);
        const send = () => (path.startsWith("/v1/batches") ? caller.maker : caller.by).post(path, bytes);
        const startedAt = performance.now();
        const answer = await send();
        await checkAnswer(path, spoiled, answer, performance.now() - startedAt, send);
        seen[answer.status] = (seen[answer.status] ?? 0) + 1;
        if (isRefused(answer)) refused.push(send);
        else if (answer.status === 200 && path === "/v1/coupons/lock")
          last = { request_id: body["request_id"] as string, redemption: answer.json.redemption };
      },
    ),
    { numRuns: 800 },
  );
  t.comment(JSON.stringify(seen));
  for (const status of [200, 400, 409]) t.ok(seen[status], `some answers with ${status}`);

  const before = await readState(service.owner, { withRequests: true });
  for (const send of refused) if (!isRefused(await send())) t.fail("a refused body is accepted the second time");
  t.strictSame(
    changedTables(before, await readState(service.owner, { withRequests: true })),
    [],
    `${refused.length} refusals change nothing`,
  );
});
