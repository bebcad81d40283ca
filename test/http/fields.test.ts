// The fields of requests: bad values are 400 and are never repeated in the answer; good values reach the database.
import t from "tap";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { fits } from "../support/fits.ts";
import { bodies, code, keys, startStub } from "../support/stub.ts";

const long = (length: number) => "x".repeat(length);
const text = ["", 1, null, true, {}, [], "a\u0000", "a\ud800", "line\nbreak"];
const amounts = [-0.01, 1e12, "1", null, true, [1]];

// Bad values by field. A missing field is tested apart.
const wrong: Record<string, unknown[]> = {
  request_id: [...text, long(129)],
  lock_request_id: [...text, long(129)],
  coupon: ["", 1, null, {}, "123", `${code}0`, code.replace(/.$/, "U"), [code]],
  merchant: [...text, long(65)],
  template: [...text, long(65)],
  batch: [...text, long(65)],
  redemption: [...text, long(65)],
  distributor: [...text, long(65)],
  total_count: [0, -1, 1.5, 10_000_001, "10", null, true],
  order_amount: amounts,
  currency: ["", "eur", "EURO", "EU", 978, null],
  order_id: [...text, long(129)],
  reason: [1, null, {}, "a\u0000", "a\ud800", long(501)],
  event_id: [...text, long(65)],
  event_type: [...text, "coupon", "coupon.redeemed "],
};
const required = [
  "request_id",
  "lock_request_id",
  "coupon",
  "merchant",
  "template",
  "batch",
  "redemption",
  "total_count",
  "event_id",
  "event_type",
];
const whenMissing: Record<string, string> = { event_id: "is required, unless from and to are sent" };
const optional: Record<string, string[]> = {
  "/v1/coupons/lock": ["order_amount", "currency", "order_id"],
  "/v1/coupons/redeem": ["order_amount", "currency", "order_id"],
  "/v1/coupons/void": ["reason"],
  "/v1/redemptions/reverse": ["reason"],
  "/v1/batches": ["distributor"],
};

t.test("Every bad field of every route is 400 and named, in both variants", async (t) => {
  const { asA, asB, calls } = await startStub(t);
  for (const [path, body] of Object.entries(bodies)) {
    for (const client of [asA, asB]) {
      for (const field of [...Object.keys(body), ...(optional[path] ?? [])]) {
        for (const value of wrong[field]!) {
          const answer = await client.post(path, JSON.stringify({ ...body, [field]: value }));
          const paths = (answer.json?.details?.issues ?? []).map((issue: { path: string }) => issue.path);
          const isNamed = paths.includes(field) || paths.includes("(body)");
          if (answer.status !== 400 || answer.json.code !== "INVALID_REQUEST" || !isNamed)
            t.fail(`${path} ${field} ${JSON.stringify(value)}: ${answer.status} ${answer.text}`);
          if (answer.text.includes(code)) t.fail(`${path} ${field} repeats the code`);
        }
        const { [field]: _, ...rest } = body;
        const without = await client.post(path, rest);
        t.equal(without.status, required.includes(field) ? 400 : 200, `${path} without ${field}`);
        if (without.status === 400)
          t.strictSame(without.json.details.issues, [{ path: field, message: whenMissing[field] ?? "is required" }]);
      }
      for (const unknown of ["extra", "__proto__", "constructor", "Coupon"]) {
        const answer = await client.post(path, JSON.stringify(body).replace("{", `{"${unknown}":1,`));
        t.equal(answer.status, 400, `${path} with ${unknown}`);
      }
    }
  }
  t.ok(calls.every((call) => call.operation !== "spend_nonce"));
});

t.test("Good values reach the database as arguments of the operation; the code itself never does", async (t) => {
  const { asA, asB, calls } = await startStub(t);
  const coupon = lookupHash(keys, code);
  const merchant = "mch_1";
  const expected: Record<string, [string, Record<string, unknown>]> = {
    "/v1/coupons/lock": ["lock", { coupon, merchant }],
    "/v1/coupons/redeem": ["redeem", { coupon, merchant }],
    "/v1/coupons/confirm": ["confirm", { coupon, merchant, lock_request_id: "r-0" }],
    "/v1/coupons/cancel": ["cancel", { coupon, lock_request_id: "r-0" }],
    "/v1/coupons/void": ["void", { coupon, merchant }],
    "/v1/coupons/query": ["query", { coupon, merchant }],
    "/v1/redemptions/reverse": ["reverse", { redemption: "red_1" }],
    "/v1/batches": ["create_batch", { template: "tpl_1", total_count: 10, key_version: "1" }],
    "/v1/batches/allocate": ["allocate_batch", { batch: "bat_1" }],
    "/v1/webhook/replay": ["replay_events", { event_id: "evt_1" }],
    "/v1/webhook/test": ["test_webhook", { event_type: "coupon.redeemed" }],
  };
  for (const [path, [operation, args]] of Object.entries(expected)) {
    t.equal((await asA.post(path, bodies[path])).status, 200);
    const call = calls.pop()!;
    t.strictSame([call.operation, JSON.parse(JSON.stringify(call.args))], [operation, args]);
    t.strictSame([call.credential_id, call.request_id], [1, operation === "query" ? call.request_id : "r-1"]);
    fits(t, call.body_hash ?? "none", operation === "query" ? "none" : /^[0-9a-f]{16}$/);
    t.notMatch(JSON.stringify(call), code);
  }
  t.equal((await asB.get("/v1/batches/bat_1")).status, 200);
  fits(t, calls.pop(), {
    credential_id: 2,
    operation: "get_batch",
    args: { batch: "bat_1" },
    body_hash: null,
    request_id: /^req_/,
  });
  t.equal((await asB.get("/v1/requests/a%2Fb%20%C3%BC")).status, 200);
  fits(t, calls.pop(), { operation: "get_request", args: { request_id: "a/b ü" }, body_hash: null });
  t.equal(
    (await asA.post("/v1/coupons/query", { ...bodies["/v1/coupons/query"], request_id: "q-1" })).status,
    200,
    "a query may have a request_id",
  );
  t.equal(calls.pop()!.request_id, "q-1");
});

t.test("A code may be typed in groups, in lower case and with l for 1, and is the same value", async (t) => {
  const { asA, calls } = await startStub(t);
  const typed = `${code.slice(0, 4)}-${code.slice(4, 8).toLowerCase()} ${code.slice(8)}`.replace("1", "l");
  await asA.post("/v1/coupons/lock", bodies["/v1/coupons/lock"]);
  await asA.post("/v1/coupons/lock", { merchant: "mch_1", coupon: typed, request_id: "r-2" });
  t.strictSame(calls[1]!.args, calls[0]!.args);
  t.equal(calls[1]!.body_hash, calls[0]!.body_hash);
});

t.test("Thousands of accents are not sorted, because that takes a second", async (t) => {
  const { asA } = await startStub(t);
  const normalize = t.capture(String.prototype, "normalize", String.prototype.normalize);
  const store = "\u0301\u0327".repeat(10_000);
  t.equal((await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], store })).status, 400);
  t.ok(normalize().every(({ receiver }) => String(receiver).length <= 512));
});

t.test("Variant A: store and terminal are free texts, and redemption_context is a field", async (t) => {
  const { asA, calls } = await startStub(t);
  const lock = async (more: object) => asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], ...more });
  t.equal((await lock({ store: "  Cafe\u0301 1 ", terminal: "Kasse 2" })).status, 200);
  fits(t, calls.pop()!.args, { store: "Caf\u00e9 1", terminal: "Kasse 2" });
  t.equal((await lock({ terminal: "T" })).status, 200, "a terminal without a store");
  t.equal((await lock({ store: `  ${"é".repeat(64)}  ` })).status, 200, "64 characters after trimming");
  // One character that Unicode also writes as four.
  t.equal((await lock({ store: "\u1f82".normalize("NFD").repeat(64) })).status, 200, "64 characters after composing");
  t.equal((await lock({ store: long(65) })).status, 400);
  calls.length = 0;
  t.equal((await lock({ store: "   " })).status, 200, "only spaces count as not given");
  t.notOk("store" in JSON.parse(JSON.stringify(calls.pop()!.args)));

  const items = [{ sku: "A1", quantity: 2, amount: 19.9 }, {}];
  t.equal((await lock({ redemption_context: { items } })).status, 200);
  t.strictSame(calls.pop()!.args["items"], items);
  t.equal((await lock({ redemption_context: {} })).status, 200);
  calls.length = 0;
  const further = { basket: { id: 7, tags: ["a", null, 1.5] }, 'it"em': true };
  t.equal((await lock({ redemption_context: { items, ...further } })).status, 200, "further fields");
  t.strictSame(JSON.parse(JSON.stringify(calls[0]!.args)).items, items);
  t.notMatch(JSON.stringify(calls[0]!.args), "basket", "they have no effect");
  for (const context of [
    null,
    [],
    { items: {} },
    { items: [{ sku: 1 }] },
    { items: [{ amount: -1 }] },
    { items: [{ name: "x" }] },
  ]) {
    t.equal((await lock({ redemption_context: context })).status, 400, JSON.stringify(context));
  }
  fits(t, (await lock({ redemption_context: { items: [{}, { amount: "1" }] } })).json.details.issues, [
    { path: "redemption_context.items.1.amount", message: "must be a number" },
  ]);
});

t.test("Variant B: a terminal needs a store, and redemption_context is an unknown field", async (t) => {
  const { asB, calls } = await startStub(t);
  const lock = async (more: object) => asB.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], ...more });
  t.equal((await lock({ store: " S1", terminal: "T1" })).status, 200);
  fits(t, calls.pop()!.args, { store: " S1", terminal: "T1" }, "unchanged, because it is looked up");
  fits(t, (await lock({ terminal: "T1" })).json.details.issues, [{ path: "terminal" }]);
  fits(t, (await lock({ redemption_context: {} })).json.details.issues, [
    { path: "redemption_context", message: "unknown field" },
  ]);
});

t.test("Numbers that cannot be stored are 400", async (t) => {
  const { asA } = await startStub(t);
  const body = JSON.stringify(bodies["/v1/coupons/lock"]).slice(0, -1);
  for (const literal of ["1e400", "-1e400", "1000000000000", "NaN", "Infinity", "1e12"])
    t.equal((await asA.post("/v1/coupons/lock", `${body},"order_amount":${literal}}`)).status, 400, literal);
  for (const literal of ["0", "-0", "999999999999.99", "1e-7", "19.90"])
    t.equal((await asA.post("/v1/coupons/lock", `${body},"order_amount":${literal}}`)).status, 200, literal);
});

t.test("A body that is not a JSON object is 400", async (t) => {
  const { asA } = await startStub(t);
  for (const body of [
    "",
    "null",
    "[]",
    '"x"',
    "{",
    `{"coupon":"${code}"`,
    `{"a":1,"a":1}`,
    Buffer.from([0x7b, 0xff, 0x7d]),
  ]) {
    const answer = await asA.post("/v1/coupons/lock", body);
    fits(t, [answer.status, answer.json.details.issues], [400, [{ path: "(body)" }]]);
    t.notMatch(answer.text, code);
  }
});

t.test("A code in the wrong place is not repeated, not even as the name of a field", async (t) => {
  const { asA, log } = await startStub(t);
  for (const body of [
    { [code]: 1 },
    { coupon: code, [`x${code.toLowerCase()}`]: 1 },
    { merchant: [code], total_count: code },
    { request_id: { a: code } },
  ]) {
    for (const path of Object.keys(bodies)) t.notMatch((await asA.post(path, body)).text.toUpperCase(), code);
  }
  t.notMatch((await asA.get(`/v1/batches/bat_1?${code}=1`)).text, code);
  t.notMatch(JSON.stringify(log), code);
});

t.test("Unknown query parameters are 400", async (t) => {
  const { asA } = await startStub(t);
  fits(t, (await asA.get("/v1/batches/bat_1?limit=1")).json.details.issues, [
    { path: "limit", message: "unknown query parameter" },
  ]);
  t.equal((await asA.get("/v1/batches/bat_1?batch=bat_2")).status, 400, "a parameter never replaces a path segment");
  t.equal((await asA.get("/v1/batches/bat_1?")).status, 200);
  t.equal((await asA.post("/v1/coupons/lock?x=1", bodies["/v1/coupons/lock"])).status, 400);
  t.equal((await asA.get(`/v1/batches/${long(65)}`)).status, 400);
  t.equal((await asA.get("/v1/requests/%zz")).status, 400);
  t.equal((await asA.get("/v1/requests/%00")).status, 400);
});

t.test("An idempotency-key has 1 to 128 printable characters", async (t) => {
  const { asA, calls } = await startStub(t);
  const post = (idempotencyKey: string) => asA.post("/v1/coupons/lock", bodies["/v1/coupons/lock"], { idempotencyKey });
  t.equal((await post("key 1")).status, 200);
  t.equal(calls.pop()!.idempotency_key, "key 1");
  t.equal((await post(long(128))).status, 200);
  t.equal((await post(Buffer.from("größe").toString("latin1"))).status, 200);
  t.equal(calls.pop()!.idempotency_key, "größe", "UTF-8, as in the body");
  for (const key of [long(129), "", "a\tb", "\xff"])
    fits(t, (await post(key)).json.details?.issues, [{ path: "idempotency-key" }], JSON.stringify(key.slice(0, 4)));
});
