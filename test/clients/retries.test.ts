// When the client repeats a call, and what it throws when it does not.
import { inspect } from "node:util";
import t from "tap";
import {
  createClient,
  isRefused,
  RefusedError,
  UnansweredError,
  type Client,
  type ReplyInfo,
} from "../../clients/typescript/src/index.ts";
import { fits } from "../support/fits.ts";
import { findFreePort } from "../support/listen.ts";
import {
  accessKey,
  answer,
  cut,
  fail,
  hang,
  refusal,
  secret,
  start,
  startScripted,
  type Script,
} from "./scripted-service.ts";

const coupon = "0123456789ABCDEF";
const body = { request_id: "r-1", coupon, merchant: "mch_1" };
const done = { ok: true, redemption: "red_1", discount_amount: 5 };

const sends = (text: string): Script => {
  return (response) => response.end(text);
};
const switches = (...headers: string[]): Script => {
  const head = ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", ...headers].join("\r\n");
  return ({ socket }) => socket!.end(`${head}\r\n\r\n`);
};

t.test("A lost connection, 5xx, 429 and 408 are repeated: the same bytes, a new nonce and signature", async (t) => {
  const failures: [string, Script][] = [
    ["lost connection", cut],
    ["503", refusal(503, "UNAVAILABLE")],
    ["500", refusal(500, "INTERNAL_ERROR")],
    ["429", refusal(429, "RATE_LIMITED")],
    ["408", refusal(408, "INVALID_REQUEST")],
    ["the first request still runs", refusal(409, "REQUEST_IN_PROGRESS")],
    ["a proxy sent the request twice", refusal(401, "NONCE_REUSED")],
    ["another protocol", switches("upgrade: other")],
    ["another protocol without a name", switches()],
    ...["", "null", "[]", '"ok"', '{"ok":true'].map((text): [string, Script] => [`an answer of ${text}`, sends(text)]),
  ];
  const tryOne = async ([name, failure]: [string, Script]) => {
    const { client, received } = await start(t, [failure, answer(200, done)]);
    t.strictSame(await client.redeem(body), done, name);
    const expected = ["POST", "/v1/coupons/redeem", JSON.stringify(body)];
    const found = received.map((one) => [one.method, one.target, one.body]);
    t.strictSame(found, [expected, expected]);
    const [first, second] = received.map(({ headers }) => headers);
    for (const header of ["x-svc-nonce", "x-svc-signature"]) t.not(first![header], second![header]);
  };
  await Promise.all(failures.map(tryOne));
});

t.test("A connection that switched protocols carries no other request", async (t) => {
  const open: Script = ({ socket }) => socket!.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\r\n");
  const { client, received } = await start(t, [open, answer(200, done)], { timeoutMs: 30_000, attempts: 2 });
  t.strictSame(await client.redeem(body), done);
  t.equal(received.length, 2);
});

t.test("A refusal is thrown at once, with the code and the details of its code", async (t) => {
  const details = { lock_expires_at: "2026-11-22T07:39:40.425Z" };
  const { client, received } = await start(t, [refusal(409, "COUPON_LOCKED", details)]);
  const error = await fail(client.redeem(body));
  fits(t, error, {
    name: "RefusedError",
    message: "redeem: COUPON_LOCKED (409): No.",
    operation: "redeem",
    status: 409,
    code: "COUPON_LOCKED",
    requestId: "r-1",
    details,
    retryAfterMs: null,
  });
  t.equal(received.length, 1);
  t.notOk(isRefused(error, "COUPON_REDEEMED", "COUPON_VOIDED"));
  t.ok(isRefused(error));
  // Compiles because the code gives the details their type.
  t.equal(isRefused(error, "COUPON_REDEEMED", "COUPON_LOCKED") && error.code === "COUPON_LOCKED", true);
  t.equal(isRefused(error, "COUPON_LOCKED") ? error.details.lock_expires_at : null, details.lock_expires_at);
});

t.test("After the last attempt the error of that attempt is thrown", async (t) => {
  const refused = await start(t, [cut, refusal(503, "UNAVAILABLE")], { attempts: 3 });
  fits(t, await fail(refused.client.redeem(body)), { name: "RefusedError", code: "UNAVAILABLE" });
  t.equal(refused.received.length, 3);
  const lost = await start(t, [cut], { attempts: 2 });
  fits(t, await fail(lost.client.redeem(body)), {
    name: "UnansweredError",
    status: null,
    cause: { code: "ECONNRESET" },
  });
  t.equal(lost.received.length, 2);
});

t.test("Retry-After is waited out, unless it is longer than the caller allows", async (t) => {
  const busy = refusal(429, "RATE_LIMITED", { limit: "requests" }, { "retry-after": "1" });
  const { client } = await start(t, [busy, answer(200, done)]);
  const startedAt = performance.now();
  await client.redeem(body);
  t.ok(performance.now() - startedAt > 990);
  const hurried = await start(t, [busy, answer(200, done)], { longestWaitMs: 999 });
  fits(t, await fail(hurried.client.redeem(body)), { code: "RATE_LIMITED", retryAfterMs: 1_000 });
  t.equal(hurried.received.length, 1);
  const date = { "retry-after": new Date(Date.now() + 100_000).toUTCString() };
  const dated = await start(t, [refusal(503, "UNAVAILABLE", null, date)]);
  const error = await fail(dated.client.redeem(body));
  t.ok((error as RefusedError).retryAfterMs! > 90_000);
  // A till with a wrong clock: the date counts by the clock of the answer.
  const past = { date: "Sun, 06 Nov 1994 08:47:57 GMT", "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" };
  const early = await start(t, [refusal(503, "UNAVAILABLE", null, past)]);
  fits(t, await fail(early.client.redeem(body)), { retryAfterMs: 100_000 });
});

t.test("A wait that is longer than a timer of Node does not end at once", async (t) => {
  const month = refusal(503, "UNAVAILABLE", null, { "retry-after": "2592000" });
  const enough = new AbortController();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  t.teardown(() => process.off("warning", onWarning));
  const { client, received } = await start(t, [month, answer(200, done)], {
    longestWaitMs: Infinity,
    onReply: () => setTimeout(() => enough.abort(new Error("enough")), 100),
  });
  fits(t, await fail(client.redeem(body, { signal: enough.signal })), { message: "enough" });
  t.equal(received.length, 1);
  t.strictSame(warnings, []);
});

t.test("An answer that is not from the service is no answer", async (t) => {
  const page = (status: number) => (response: { writeHead: Function; end: Function }) => {
    response.writeHead(status, { "content-type": "text/html" });
    response.end("<h1>Welcome to the hotel</h1>");
  };
  const proxied = await start(t, [page(502), page(200), answer(200, done)]);
  t.strictSame(await proxied.client.redeem(body), done);
  const login = await start(t, [page(403)]);
  fits(t, await fail(login.client.redeem(body)), { name: "UnansweredError", status: 403 });
  t.equal(login.received.length, 1);
});

t.test("A service that does not answer in time is asked again", async (t) => {
  const { client, received } = await start(t, [hang, answer(200, done)], { timeoutMs: 500 });
  t.strictSame(await client.redeem(body), done);
  // On a busy machine the second answer may be late too.
  t.ok(received.length >= 2);
});

t.test("With a wrong clock, the client follows the time of the service from then on", async (t) => {
  const serverTime = "2030-01-02T03:04:05.678Z";
  const late = refusal(401, "TIMESTAMP_OUT_OF_WINDOW", { server_time: serverTime });
  const { client, received } = await start(t, [late, answer(200, done)]);
  await client.redeem(body);
  await client.redeem(body);
  const offsets = received.map(({ headers }) => Number(headers["x-svc-timestamp"]) - Date.parse(serverTime) / 1000);
  t.ok(Math.abs(offsets[0]!) > 1_000_000);
  t.ok(Math.abs(offsets[1]!) < 100);
  t.ok(Math.abs(offsets[2]!) < 100);
});

t.test("onReply sees each answer", async (t) => {
  const seen: ReplyInfo[] = [];
  const replayed = answer(200, done, { "idempotent-replayed": "true" });
  const { client } = await start(t, [refusal(503, "UNAVAILABLE"), replayed], { onReply: (reply) => seen.push(reply) });
  await client.redeem(body);
  t.strictSame(seen, [
    { operation: "redeem", attempt: 1, status: 503, requestId: "r-1", isReplay: false },
    { operation: "redeem", attempt: 2, status: 200, requestId: "r-1", isReplay: true },
  ]);
});

t.test("Path, query and headers carry what the caller gave, and the signature covers it", async (t) => {
  const { client, received } = await start(t, [answer(200, done)]);
  await client.getRequest({ request_id: "a/b ü?" });
  await client.pullEvents({ cursor: "cur_+&=", limit: 7 });
  await client.pullEvents();
  await client.redeem(body, { idempotencyKey: "größe-1 €" });
  t.strictSame(
    received.map(({ target }) => target),
    ["/v1/requests/a%2Fb%20%C3%BC%3F", "/v1/events?cursor=cur_%2B%26%3D&limit=7", "/v1/events", "/v1/coupons/redeem"],
  );
  const key = received[3]!.headers["idempotency-key"] as string;
  t.equal(Buffer.from(key, "latin1").toString(), "größe-1 €", "in UTF-8");
  t.equal(received[0]!.headers["content-type"], undefined);
});

t.test("No error has a code or the secret", async (t) => {
  const dead = await findFreePort();
  const options = { accessKey, secret, attempts: 1, timeoutMs: 50 };
  const at = async (scripts: Script[]) => (await start(t, scripts, options)).client;
  const calls: [string, Client][] = [
    ["refused", await at([refusal(422, "COUPON_CODE_INVALID")])],
    ["cut", await at([cut])],
    ["late", await at([hang])],
    ["not JSON", await at([(response) => response.end(`{"${coupon}`)])],
    ["no service", createClient({ ...options, url: `http://127.0.0.1:${dead}` })],
    ["not TLS", createClient({ ...options, url: (await startScripted(t, [cut])).url.replace("http", "https") })],
  ];
  for (const [name, client] of calls) {
    const error = await fail(client.redeem(body));
    t.ok(error instanceof RefusedError || error instanceof UnansweredError, `${name}: ${error.name}`);
    const shown = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error);
    t.notOk(shown.includes(coupon) || shown.includes(secret), name);
    t.notOk(inspect(client, { depth: 20, showHidden: true }).includes(secret), "nor has the client");
  }
  const wrong = await fail(calls[0]![1].redeem(body, { idempotencyKey: `${coupon}\n` }));
  t.ok(wrong instanceof TypeError, "Node refuses the header");
  t.notOk(inspect(wrong, { depth: 20 }).includes(coupon));
});

t.test("A time-out longer than the longest timer of Node waits for the answer", async (t) => {
  const slow: Script = (response) => setTimeout(() => answer(200, done)(response), 200);
  const { client, received } = await start(t, [slow], { timeoutMs: Infinity });
  t.strictSame(await client.redeem(body), done);
  t.equal(received.length, 1, "at the first attempt");
});

t.test("A URL with a path, and one of another protocol, are refused", (t) => {
  for (const url of ["http://h/v2", "http://h/?a", "http://user:x@h", "ftp://h", "coupons.example"])
    t.throws(() => createClient({ url, accessKey, secret }), { name: "TypeError" }, url);
  t.end();
});
