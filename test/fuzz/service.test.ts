// Generated input for the service: the valid body of an operation with one thing wrong, or anything at all; cursors of
// real pages with changes, and random ones.
import fc from "fast-check";
import t from "tap";
import type { Reply } from "../support/client.ts";
import { changedTables } from "../support/inspect.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import type { Scene } from "../support/scene.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { readState } from "../support/state.ts";
import { bodies } from "../support/stub.ts";

// JSON texts, and texts that look like JSON.
const numbers = ["1e400", "-1e400", "1e-400", "NaN", "Infinity", "-0", "0.1e1", "00", "1.", "1e12", "9007199254740993"];
const strings = ["", "\\u0000", "\\ud800", "\\udc00\\ud800", "\\u202e", "e\\u0301", "\u{10ffff}", "' or 1=1 --", "%00"];
const others = [
  "null",
  "true",
  "{}",
  "[]",
  "[1e308,1e308]",
  '{"items":[{}]}',
  '{"items":[{"sku":"A1","amount":1e308}]}',
];
const keys = ["__proto__", "constructor", "toString", "request_id ", "Coupon", "store", "terminal", "reason", ""];
const literal = fc.oneof(
  fc.constantFrom(...numbers, ...others, ...strings.map((text) => `"${text}"`), ...keys.map((key) => `{"${key}":1}`)),
  fc.constantFrom(10, 1_000, 10_000).map((depth) => `${"[".repeat(depth)}1${"]".repeat(depth)}`),
  fc.constantFrom(10, 1_000, 10_000).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 200 }).map((text) => JSON.stringify(text)),
  fc.double().map(String),
);
const ways = ["replace", "remove", "add", "twice", "poison", "bytes", "cut", "none", "whole"] as const;
const spoil = fc.record({
  at: fc.nat(400),
  how: fc.constantFrom("replace", "replace", ...ways),
  literal,
  name: fc.constantFrom(...keys),
  byte: fc.nat(255),
});
type Spoil = typeof spoil extends fc.Arbitrary<infer Each> ? Each : never;

function toBytes(body: Record<string, unknown>, { at, how, literal, name, byte }: Spoil): Buffer {
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

type Locked = { lock_request_id: string; redemption: string };

// A valid body. confirm, cancel and reverse name the last lock.
function bodyOf(path: string, { variant, merchant, template }: Scene, coupon: string, batch: string, last: Locked) {
  const values: Record<string, unknown> = { ...last, coupon, merchant, template, batch, request_id: newRequestId() };
  const fields = Object.entries(bodies[path]!).map(([name, value]) => [name, values[name] ?? value]);
  const items = [{ sku: "A1", quantity: 1, amount: 20 }];
  const order = { order_amount: 20, currency: "EUR", order_id: "o", store: "S1", terminal: "T1" };
  return {
    ...Object.fromEntries(fields),
    ...(/lock|redeem/.test(path) && order),
    ...(/lock|redeem/.test(path) && variant === "A" && { redemption_context: { items } }),
  };
}

// Slow input is far beyond the 4 s that clients are promised. The machine may stall too.
const bounds = { timeout: 20_000, interruptAfterTimeLimit: 15_000 };

const isRefused = ({ status, json }: Reply) => status === 400 || json.code === "COUPON_CODE_INVALID";

// Whether the service records the answer, so that a retry gets the same bytes.
function isRecorded({ status, json }: Reply): boolean {
  return (
    status === 200 ||
    ([404, 409, 422].includes(status) &&
      !["COUPON_CODE_INVALID", "IDEMPOTENCY_KEY_REUSED", "REQUEST_IN_PROGRESS", "ROUTE_NOT_FOUND"].includes(json.code))
  );
}

// The client compares each answer with the API description, which also has those of failures.
function checkStatus({ status, text }: Reply): void {
  if (status === 429 || status >= 500) throw new Error(`${status} ${text}`);
}

// Throws unless ambiguous bodies are refused, and a recorded answer is replayed.
async function checkAnswer(path: string, { how }: Spoil, send: () => Promise<Reply>): Promise<Reply> {
  const answer = await send();
  checkStatus(answer);
  // Two parsers could read such a body differently.
  if (["twice", "poison", "cut"].includes(how) && answer.status !== 400)
    throw new Error(`${how}: ${answer.status} ${answer.text}`);
  if (isRefused(answer) || path === "/v1/coupons/query" || !isRecorded(answer)) return answer;
  const again = await send();
  if (again.text !== answer.text || again.headers["idempotent-replayed"] !== "true")
    throw new Error(`again: ${again.status} ${again.text}`);
  return answer;
}

t.test("Any body gets a documented answer; refusals change nothing, and recorded answers are replayed", async (t) => {
  const { a, b, owner, makeBatch } = await scenario(t, { http: true, limits: { wrongCodesPerMinute: null } });
  const scenes = [];
  for (const scene of [a, b]) scenes.push({ scene, ...(await makeBatch(scene.maker, scene.template, 30)) });
  let last: Locked = { lock_request_id: "none", redemption: `red_${"0".repeat(26)}` };
  const seen = new Set<number>();
  const refused: (() => Promise<Reply>)[] = [];
  const path = fc.constantFrom(...Object.keys(bodies));
  await fc.assert(
    fc.asyncProperty(path, fc.constantFrom(...scenes), fc.nat(29), spoil, async (path, from, number, spoiled) => {
      const { scene, id, coupons } = from;
      const body = bodyOf(path, scene, coupons[number]!.code, id, last);
      const bytes = toBytes(body, spoiled);
      const by = path.startsWith("/v1/batches") ? scene.maker : scene.till;
      const send = () => by.post(path, bytes);
      const answer = await checkAnswer(path, spoiled, send);
      seen.add(answer.status);
      if (isRefused(answer)) refused.push(send);
      else if (answer.status === 200 && path === "/v1/coupons/lock")
        last = { lock_request_id: body["request_id"], redemption: answer.json.redemption };
    }),
    { ...bounds, numRuns: 200 },
  );
  for (const status of [200, 400, 409]) t.ok(seen.has(status), `some answers with ${status}`);

  const before = await readState(owner, { withRequests: true });
  for (const send of refused) if (!isRefused(await send())) t.fail("a refused body is accepted the second time");
  t.strictSame(changedTables(before, await readState(owner, { withRequests: true })), [], "refusals change nothing");
});

t.test("Any cursor returns a page of the caller's own events or 400", async (t) => {
  const { a, b, as, owner } = await scenario(t, { http: true });
  const readers = [a.distributor, b.distributor, as("ak_a_stranger"), as("ak_other")];
  const own = new Map<unknown, string[]>();
  for (const scene of [a, b]) {
    const ids = (await scene.makeCoupons(12, "REDEEMED")).map(({ id }) => id);
    own.set(scene.distributor, ids);
  }
  await sequenceEvents(owner);
  const given: string[] = [];
  // A caller without events gets the cursor of the beginning.
  for (const reader of readers)
    for (const limit of [1, 2, 5, 12]) given.push((await reader.get(`/v1/events?limit=${limit}`)).json.next_cursor);

  const some = fc.string({ unit: "binary", maxLength: 3 });
  const cursor = fc.oneof(
    fc.constantFrom(...given),
    fc
      .tuple(fc.constantFrom(...given), fc.nat(40), some, fc.nat(3))
      .map(([cursor, at, more, gone]) => encodeURIComponent(cursor.slice(0, at) + more + cursor.slice(at + gone))),
    fc.string({ unit: "binary", maxLength: 70 }).map(encodeURIComponent),
    // The usual prefix with random base64, and texts with invalid escapes.
    fc.uint8Array({ maxLength: 12 }).map((bytes) => `cur_${Buffer.from(bytes).toString("base64url")}`),
    fc.string({ unit: fc.constantFrom(..."%AZaz09_-=+&;.~!*'()"), maxLength: 20 }),
  );
  const limit = fc.constantFrom("", "&limit=1", "&limit=1000");
  const seen = new Set<number>();
  await fc.assert(
    fc.asyncProperty(cursor, fc.constantFrom(...readers), limit, async (text, reader, limit) => {
      const answer = await reader.get(`/v1/events?cursor=${text}${limit}`);
      checkStatus(answer);
      seen.add(answer.status);
      if (answer.status !== 200) return answer.status === 400;
      return answer.json.events.every((event: { coupon_id: string }) => own.get(reader)?.includes(event.coupon_id));
    }),
    { ...bounds, numRuns: 150 },
  );
  t.strictSame([...seen].sort(), [200, 400]);
});
