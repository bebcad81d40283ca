// The fields of requests, their limits, and how problems are listed: bad values are 400 and are never repeated in the
// answer; good values reach the database.
import t from "tap";
import { newNonce, signedHeaders } from "../../clients/typescript/src/signature.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { sendBytes, sendPlain, type Reply } from "../support/client.ts";
import { readDescription } from "../support/described-answers.ts";
import { fits } from "../support/fits.ts";
import { bodies, code, keys, lockPath, secret, startStub } from "../support/stub.ts";

const long = (length: number) => "x".repeat(length);
const noText = [1, null, true, {}, [], "a\u0000", "a\ud800"];

type Values = { bad: unknown[]; good: unknown[] };

// Joiners are parts of words and of emoji.
const joined = ["\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0645\u06cc\u200c\u062e", "co\u00adop", "👨‍👩‍👧"];
const unprintable = ["line\nbreak", "a\u2028b", "\u202etxt", "a\u200b", "\ufeffa"];

// Printable texts of 1 to that many characters.
const upTo = (longest: number): Values => ({
  bad: ["", ...unprintable, long(longest + 1), ...noText],
  good: ["x", ...joined, long(longest)],
});
const values: Record<string, Values> = {
  request_id: upTo(128),
  lock_request_id: upTo(128),
  coupon: { bad: ["", 1, null, {}, "123", code.slice(1), `${code}0`, code.replace(/.$/, "U"), [code]], good: [code] },
  merchant: upTo(64),
  template: upTo(64),
  batch: upTo(64),
  redemption: upTo(64),
  distributor: upTo(64),
  party: upTo(64),
  total_count: { bad: [0, -1, 1.5, 10_000_001, "10", null, true], good: [1, 10_000_000] },
  order_amount: { bad: [-0.01, 1e12, "1", null, true, [1]], good: [0, 19.9, 999_999_999_999.99, 1e-7] },
  currency: { bad: ["", "eur", "EURO", "EU", 978, null], good: ["EUR"] },
  order_id: upTo(128),
  reason: upTo(500),
  event_id: upTo(64),
  event_type: { bad: ["", ...noText, "coupon", "coupon.redeemed "], good: ["coupon.redeemed"] },
};
// Blank counts as absent in these, if they are optional, and null in every optional field.
const blankable = ["currency", "order_id", "reason"];
const absent = (field: string): unknown[] => [null, ...(blankable.includes(field) ? ["", " \t", "\u3164"] : [])];
// These have tests of their own, below or in test/http/service.test.ts.
const elsewhere = ["store", "terminal", "redemption_context", "from", "to"];
const whenMissing: Record<string, string> = { event_id: "is required, unless from and to are sent" };

/** The optional fields of the operation at this path, as the description of the API lists them. */
function optionalFields(path: string, body: object, variant: "A" | "B"): string[] {
  const { paths, components } = readDescription(variant).document;
  const { $ref } = paths[path].post.requestBody.content["application/json"].schema;
  return Object.keys(components.schemas[$ref.split("/").at(-1)].properties).filter(
    (name) => !(name in body) && !elsewhere.includes(name),
  );
}

const issuesOf = ({ json }: Reply): { path: string; message: string }[] => json?.details?.issues ?? [];
const listed = (reply: Reply) => issuesOf(reply).map(({ path, message }) => [path, message]);

t.test("Every bad field of every route is 400 and named, and every good one passes, in both variants", async (t) => {
  const { asA, asB, calls } = await startStub(t);
  for (const [path, body] of Object.entries(bodies)) {
    for (const client of [asA, asB]) {
      const optional = optionalFields(path, body, client === asA ? "A" : "B");
      for (const field of [...Object.keys(body), ...optional]) {
        if (!values[field]) throw new Error(`add the values of ${field} to this file`);
        const { bad, good } = values[field];
        const isAbsent = (value: unknown) => optional.includes(field) && absent(field).includes(value);
        for (const value of bad.filter((each) => !isAbsent(each))) {
          const answer = await client.post(path, { ...body, [field]: value });
          const isNamed = issuesOf(answer).some((issue) => [field, "(body)"].includes(issue.path));
          if (answer.status !== 400 || answer.json.code !== "INVALID_REQUEST" || !isNamed)
            t.fail(`${path} ${field} ${JSON.stringify(value)}: ${answer.status} ${answer.text}`);
          if (answer.text.includes(code)) t.fail(`${path} ${field} repeats the code`);
        }
        for (const value of good) {
          const { status, text } = await client.post(path, { ...body, [field]: value });
          if (status !== 200) t.fail(`${path} ${field} ${JSON.stringify(value)}: ${text}`);
          if (field in calls.at(-1)!.args && field !== "coupon") t.equal(calls.at(-1)!.args[field], value);
        }
        const { [field]: _, ...rest } = body;
        const without = await client.post(path, rest);
        const hash = calls.at(-1)?.body_hash;
        for (const value of optional.includes(field) ? absent(field) : []) {
          t.equal((await client.post(path, { ...body, [field]: value })).status, 200, `${path} ${field}: ${value}`);
          const call = calls.at(-1)!;
          t.strictSame([call.args[field], call.body_hash], [undefined, hash], "as if it were not sent");
        }
        if (optional.includes(field)) t.equal(without.status, 200, `${path} without ${field}`);
        else t.strictSame(listed(without), [[field, whenMissing[field] ?? "is required"]], `${path} without ${field}`);
      }
      for (const unknown of ["extra", "__proto__", "constructor", "toString", "Coupon"]) {
        const answer = await client.post(path, JSON.stringify(body).replace("{", `{"${unknown}":1,`));
        t.strictSame([answer.status, answer.json.code], [400, "INVALID_REQUEST"], `${path} with ${unknown}`);
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
    "/v1/batches/suspend": ["suspend_batch", { batch: "bat_1" }],
    "/v1/batches/resume": ["resume_batch", { batch: "bat_1" }],
    "/v1/batches/recall": ["recall_batch", { batch: "bat_1" }],
    "/v1/sandbox/close_day": ["close_day", {}],
    "/v1/webhook/replay": ["replay_events", { event_id: "evt_1" }],
    "/v1/webhook/test": ["test_webhook", { event_type: "coupon.redeemed" }],
    "/v1/portal": ["open_portal", {}],
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
  await asA.post("/v1/coupons/query", { ...bodies["/v1/coupons/query"], request_id: "q-1" });
  t.equal(calls.pop()!.request_id, "q-1", "a query may have a request_id");
});

t.test("A code may be typed in groups, in lower case and with l for 1, and is the same value", async (t) => {
  const { lock, calls } = await startStub(t);
  const typed = `${code.slice(0, 4)}-${code.slice(4, 8).toLowerCase()} ${code.slice(8)}`.replace("1", "l");
  await lock();
  await lock({ coupon: typed, request_id: "r-2" });
  t.strictSame(calls[1]!.args, calls[0]!.args);
  t.equal(calls[1]!.body_hash, calls[0]!.body_hash);
});

t.test("Variant A: store and terminal are free texts of at most 64 characters after trimming", async (t) => {
  const { lock, calls } = await startStub(t);
  t.equal((await lock({ store: "  Cafe\u0301 1 ", terminal: "Kasse 2" })).status, 200);
  fits(t, calls.pop()!.args, { store: "Caf\u00e9 1", terminal: "Kasse 2" });
  t.equal((await lock({ terminal: "T" })).status, 200, "a terminal without a store");
  for (const field of ["store", "terminal"]) {
    t.equal((await lock({ [field]: `  ${"é".repeat(64)}  ` })).status, 200, "64 characters after trimming");
    t.equal((await lock({ [field]: long(65) })).status, 400);
  }
  // One character that Unicode also writes as four.
  t.equal((await lock({ store: "\u1f82".normalize("NFD").repeat(64) })).status, 200, "64 characters after composing");
  t.equal((await lock({ store: `\ufeff${joined[0]}\u202e`, terminal: "Till\r\n\t2\u0007\ue000" })).status, 200);
  fits(t, calls.pop()!.args, { store: joined[0], terminal: "Till 2" }, "what is not printable is left out");
  calls.length = 0;
  t.equal((await lock({ store: " \u200b\t" })).status, 200, "only spaces count as not given");
  t.notOk("store" in JSON.parse(JSON.stringify(calls.pop()!.args)));

  const normalize = t.capture(String.prototype, "normalize", String.prototype.normalize);
  t.equal((await lock({ store: "\u0301\u0327".repeat(10_000) })).status, 400);
  const isShort = normalize().every(({ receiver }) => String(receiver).length <= 512);
  t.ok(isShort, "thousands of accents are not sorted, because that takes a second");
});

t.test("Variant A: redemption_context has items with known fields, and further fields without effect", async (t) => {
  const { lock, calls } = await startStub(t);
  const items = [{ sku: "A1", quantity: 2, amount: 19.9 }, { sku: long(128) }, {}];
  t.equal((await lock({ redemption_context: { items } })).status, 200);
  t.strictSame(calls.pop()!.args["items"], items);
  t.equal((await lock({ redemption_context: {} })).status, 200);
  calls.length = 0;
  const further = { basket: { id: 7, tags: ["a", null, 1.5] }, 'it"em': true };
  t.equal((await lock({ redemption_context: { items, ...further } })).status, 200, "further fields");
  t.strictSame(JSON.parse(JSON.stringify(calls[0]!.args)).items, items);
  t.notMatch(JSON.stringify(calls[0]!.args), "basket", "they have no effect");
  calls.length = 0;
  const nothing = [null, { items: null }, { items: [{ sku: null, quantity: null, amount: null }] }];
  for (const redemption_context of [undefined, {}, { items: [{}] }, ...nothing])
    t.equal((await lock({ redemption_context })).status, 200, JSON.stringify(redemption_context));
  const [none, empty, blank, ...same] = calls.map(({ args, body_hash }) => JSON.stringify([args["items"], body_hash]));
  t.strictSame(same, [none, empty, blank], "null counts as absent, at every depth");
  t.equal((await lock({ redemption_context: { items: [{ amount: -1, quantity: -1 }] } })).status, 200, "returned");
  const wrongItems = [{ sku: 1 }, { sku: "" }, { sku: long(129) }, { amount: -1e12 }, { name: "x" }];
  for (const redemption_context of [[], { items: {} }, ...wrongItems.map((item) => ({ items: [item] }))])
    t.equal((await lock({ redemption_context })).status, 400, JSON.stringify(redemption_context));
  t.strictSame(listed(await lock({ redemption_context: { items: [{}, { amount: "1" }] } })), [
    ["redemption_context.items.1.amount", "must be a number"],
  ]);
});

t.test("Variant B: a terminal needs a store, and redemption_context is an unknown field", async (t) => {
  const { asB, calls } = await startStub(t);
  const lock = async (more: object) => asB.post(lockPath, { ...bodies[lockPath], ...more });
  t.equal((await lock({ store: " S1", terminal: "T1" })).status, 200);
  fits(t, calls.pop()!.args, { store: " S1", terminal: "T1" }, "unchanged, because it is looked up");
  for (const store of [undefined, null, "", " "])
    t.strictSame(listed(await lock({ store, terminal: "T1" })), [["terminal", "needs a store"]]);
  for (const nothing of [null, "", " \t"]) {
    t.equal((await lock({ store: "S", terminal: nothing })).status, 200);
    t.equal(calls.pop()!.args["terminal"], undefined, "blank counts as absent");
  }
  t.strictSame(listed(await lock({ redemption_context: {} })), [["redemption_context", "unknown field"]]);
  for (const field of ["store", "terminal"])
    for (const [length, status] of [
      [64, 200],
      [65, 400],
    ] as const)
      t.equal((await lock({ store: "S", [field]: long(length) })).status, status, `${field} of ${length}`);
});

t.test("Numbers that cannot be stored, and what is no JSON number, are 400", async (t) => {
  const { asA } = await startStub(t);
  const body = JSON.stringify(bodies[lockPath]).slice(0, -1);
  for (const literal of ["1e400", "-1e400", "NaN", "Infinity"])
    t.equal((await asA.post(lockPath, `${body},"order_amount":${literal}}`)).status, 400, literal);
  for (const literal of ["-0", "19.90"])
    t.equal((await asA.post(lockPath, `${body},"order_amount":${literal}}`)).status, 200, literal);
});

t.test("Unknown query parameters are 400, and so are segments that no ID can be", async (t) => {
  const { asA } = await startStub(t);
  t.strictSame(listed(await asA.get("/v1/batches/bat_1?limit=1")), [["limit", "unknown query parameter"]]);
  t.equal((await asA.get("/v1/batches/bat_1?batch=bat_2")).status, 400, "a parameter never replaces a path segment");
  t.equal((await asA.get("/v1/batches/bat_1?")).status, 200);
  for (const path of [`batches/${long(65)}`, "requests/%zz", "requests/%00"])
    t.equal((await asA.get(`/v1/${path}`)).status, 400, path);
});

t.test("An idempotency-key has 1 to 128 printable characters, and is sent once", async (t) => {
  const { lock, calls } = await startStub(t);
  const post = (idempotencyKey: string) => lock({}, { idempotencyKey });
  t.equal((await post("key 1")).status, 200);
  t.equal(calls.pop()!.idempotency_key, "key 1");
  t.equal((await post(long(128))).status, 200);
  t.equal((await post(Buffer.from("größe").toString("latin1"))).status, 200);
  t.equal(calls.pop()!.idempotency_key, "größe", "UTF-8, as in the body");
  calls.length = 0;
  const refused = [["idempotency-key", "the header must be 1 to 128 printable characters"]];
  for (const key of [long(129), "", "a\tb", "\xff"])
    t.strictSame(listed(await post(key)), refused, JSON.stringify(key.slice(0, 4)));
  // Node sends a line for each.
  const headers = { "idempotency-key": ["key 1", "key 2"] as unknown as string };
  t.strictSame(listed(await lock({}, { headers })), refused, "neither of two is dropped");
  t.strictSame(calls, []);
});

t.test("A GET with a body is refused", async (t) => {
  const { url, calls } = await startStub(t);
  const [target, body] = ["/v1/batches/bat_1", "{}"];
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = { method: "GET", target, timestamp, nonce: newNonce(), body: Buffer.from(body) };
  const headers = signedHeaders({ accessKey: "ak_a", secret }, signed);
  const answer = await sendPlain(url, "GET", target, headers, body);
  t.strictSame([answer.status, listed(answer), calls], [400, [["(body)", "a GET takes no body"]], []]);
});

t.test("Every problem of a request is listed: the query in its order, the idempotency-key, the fields", async (t) => {
  const { asA, asB } = await startStub(t);
  t.strictSame(listed(await asB.get("/v1/events?first=1&limit=1&limit=2&limit=3&last=1&limit=0")), [
    ["first", "unknown query parameter"],
    ["limit", "duplicate query parameter"],
    ["limit", "duplicate query parameter"],
    ["last", "unknown query parameter"],
    ["limit", "duplicate query parameter"],
  ]);
  const body = { ...bodies[lockPath], merchant: 7 };
  t.strictSame(listed(await asA.post(`${lockPath}?x=1`, body, { idempotencyKey: " " })), [
    ["x", "unknown query parameter"],
    ["idempotency-key", "the header must be 1 to 128 printable characters"],
    ["merchant", "must be a string"],
  ]);
});

t.test("The log line of a 400 has the paths, and no value", async (t) => {
  const { lock, asA, log } = await startStub(t);
  await lock({ merchant: "private\n", redemption_context: { items: [{ sku: "private\n" }] }, "private 1": 1 });
  fits(t, log.at(-1), { status: 400, paths: ["merchant", "redemption_context.items.0.sku", "(unknown)"] });
  await asA.get("/v1/events?limit=private");
  fits(t, log.at(-1), { status: 400, paths: ["limit"] });
  t.notMatch(JSON.stringify(log), "private");
  await lock({ request_id: "r-3" });
  t.notOk("paths" in log.at(-1)!);
});

t.test("x-request-id and traceparent of a request are in its log line, unless they hold a code", async (t) => {
  const { lock, url, log } = await startStub(t);
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const theirs = { "x-request-id": "proxy-7f3a", traceparent };
  t.equal((await lock({}, { headers: theirs })).headers["x-request-id"], "r-1", "the answer keeps the request_id");
  fits(t, log.at(-1), { x_request_id: "proxy-7f3a", traceparent });
  await sendPlain(url, "GET", "/v1/batches/bat_1", theirs);
  fits(t, log.at(-1), { status: 401, x_request_id: "proxy-7f3a", traceparent });
  for (const [id, parent] of [
    [code, "x"],
    [`a-${code.toLowerCase()}`, `${traceparent}-x`],
    [long(129), traceparent.toUpperCase()],
    ["a b", `00-${"1".repeat(32)}`],
  ] as const) {
    await sendPlain(url, "GET", "/v1/batches/bat_1", { "x-request-id": id, traceparent: parent });
    t.notOk("x_request_id" in log.at(-1)! || "traceparent" in log.at(-1)!);
  }
});

t.test("A 400 lists up to 20 issues", async (t) => {
  const { asA, lock } = await startStub(t);
  const names = (count: number) => Array.from({ length: count }, (_, index) => `extra_${index}`);
  const fields = async (count: number) =>
    issuesOf(await lock(Object.fromEntries(names(count).map((name) => [name, 1])))).length;
  t.strictSame([await fields(19), await fields(20), await fields(21)], [19, 20, 20]);
  const parameters = async (count: number) =>
    issuesOf(await asA.get(`/v1/events?${names(count).join("=1&")}=1`)).length;
  t.strictSame([await parameters(20), await parameters(21)], [20, 20]);
});

t.test("The name of an unknown field is shown if it looks like one, and not like a mistyped code", async (t) => {
  const { lock } = await startStub(t);
  const shown = ["a", "Z9_-", "a".repeat(15), "abcd_".repeat(8)];
  const hidden = ["", "9a", "_a", "a b", "a.b", "grö", "a".repeat(16), "A".repeat(16), "a1-".repeat(6)];
  hidden.push(`${"abcd_".repeat(8)}e`);
  const answer = await lock(Object.fromEntries([...shown, ...hidden].map((name) => [name, 1])));
  t.strictSame(
    issuesOf(answer).map(({ path }) => path),
    [...shown, ...hidden.map(() => "(unknown)")],
  );
});

t.test("A body arrives in at most 1,000 pieces, and a head has less than 16 KiB", async (t) => {
  const { url } = await startStub(t);
  const statusOf = async (bytes: string) => (await sendBytes(url, bytes)).slice(9, 12);
  const post = `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
  const inPieces = (count: number) =>
    statusOf(`${post}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${"1\r\n \r\n".repeat(count)}0\r\n\r\n`);
  t.strictSame([await inPieces(1_000), await inPieces(1_001)], ["401", "413"]);
  // Target, names and values.
  const others = ["/healthz", "host", "x", "connection", "close", "x"].join("").length;
  const ofSize = (size: number) =>
    statusOf(`GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ${long(size - others)}\r\n\r\n`);
  t.strictSame([await ofSize(16_383), await ofSize(16_384)], ["200", "431"]);
});
