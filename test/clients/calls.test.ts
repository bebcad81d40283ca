// How the TypeScript client calls: when it repeats a call and how long it waits, what it throws and sends, and what it
// does with connections and downloads. The service is a script.
import { createHash } from "node:crypto";
import { getEventListeners } from "node:events";
import { Agent, createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { mock } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import t, { type Test } from "tap";
import {
  createClient,
  DownloadError,
  isRefused,
  RefusedError,
  UnansweredError,
  type CallOptions,
  type ClientOptions,
  type ReplyInfo,
} from "../../clients/typescript/src/index.ts";
import { fits } from "../support/fits.ts";
import { findFreePort, lacksIpv6, listenOnLoopback } from "../support/listen.ts";
import { recordWaits } from "../support/record-delays.ts";
import { waitUntil } from "../support/wait-until.ts";

type Received = { method: string; target: string; headers: IncomingHttpHeaders; body: string };
type Script = (response: ServerResponse) => void;

const accessKey = "ak_a";
const secret = "test_secret_0123456789abcdefghijklmnop";
const coupon = "0123456789ABCDEF";
const body = { request_id: "r-1", coupon, merchant: "mch_1" };
const done = { ok: true, redemption: "red_1", discount_amount: 5 };

type StartOptions = Partial<ClientOptions> & { isRepeating?: boolean; host?: string };

/** An answer as the service gives it. */
function answer(status: number, content: object, headers: Record<string, string> = {}): Script {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "r-1", ...headers });
    response.end(JSON.stringify(content));
  };
}

const refusal = (status: number, code: string, details: unknown = null, headers = {}): Script =>
  answer(status, { code, message: "No.", request_id: "r-1", details }, headers);
/** Closes the connection in place of an answer. */
const cut: Script = (response) => response.destroy();
/** Neither answers nor closes. */
const hang: Script = () => {};
const busy = refusal(503, "UNAVAILABLE");
const asksToWait = (seconds: number | string, more = {}) =>
  refusal(503, "UNAVAILABLE", null, { "retry-after": String(seconds), ...more });

/** A client of a service that gives one prepared answer for each request. Then the last one repeats, or all in turn. */
async function start(
  t: Test,
  scripts: Script[],
  { isRepeating = false, host = "127.0.0.1", ...options }: StartOptions = {},
) {
  const received: Received[] = [];
  const sockets = { opened: 0, open: 0 };
  const server = createServer(async (request, response) => {
    const content = await text(request);
    received.push({ method: request.method!, target: request.url!, headers: request.headers, body: content });
    const index = received.length - 1;
    scripts[isRepeating ? index % scripts.length : Math.min(index, scripts.length - 1)]!(response);
  });
  // Node's default of 5 s would end connections that a test counts.
  server.keepAliveTimeout = 600_000;
  server.on("connection", (socket) => {
    sockets.opened += 1;
    sockets.open += 1;
    socket.on("close", () => (sockets.open -= 1));
  });
  const port = await listenOnLoopback(server, host);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const client = createClient<"A">({ url, accessKey, secret, ...options });
  t.teardown(() => client.close());
  return { client, url, received, sockets };
}

/** Returns the error of a call that must fail. */
async function fail(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => Promise.reject(new Error("the call succeeded")),
    (error: Error) => error,
  );
}

t.test("a lost connection, 5xx, 429 and 408 are repeated: the same bytes, a new nonce and signature", async (t) => {
  const sends =
    (content: string): Script =>
    (response) =>
      response.end(content);
  const switches = (isOpen: boolean, ...headers: string[]): Script => {
    const head = ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", ...headers].join("\r\n");
    return ({ socket }) => socket![isOpen ? "write" : "end"](`${head}\r\n\r\n`);
  };
  const failures: Record<string, Script> = {
    "lost connection": cut,
    "503": busy,
    "500": refusal(500, "INTERNAL_ERROR"),
    "429": refusal(429, "RATE_LIMITED"),
    "408": refusal(408, "INVALID_REQUEST"),
    "the first request still runs": refusal(409, "REQUEST_IN_PROGRESS"),
    "a proxy sent the request twice": refusal(401, "NONCE_REUSED"),
    "another protocol": switches(false, "upgrade: other"),
    "another protocol without a name": switches(false),
    "another protocol on a connection that stays open": switches(true),
  };
  for (const content of ["", "null", "[]", '"ok"', '{"ok":true']) failures[`an answer of ${content}`] = sends(content);
  const tryOne = async ([name, failure]: [string, Script]) => {
    const { client, received } = await start(t, [failure, answer(200, done)], { timeoutMs: 60_000 });
    t.strictSame(await client.redeem(body), done, name);
    const expected = ["POST", "/v1/coupons/redeem", JSON.stringify(body)];
    const found = received.map((one) => [one.method, one.target, one.body]);
    t.strictSame(found, [expected, expected], name);
    const [first, second] = received.map(({ headers }) => headers);
    for (const header of ["x-svc-nonce", "x-svc-signature"]) t.not(first![header], second![header]);
  };
  await Promise.all(Object.entries(failures).map(tryOne));
});

t.test("the message of a refusal names path and message of each wrong field", async (t) => {
  const issues = ["merchant", "store"].map((path) => ({ path, message: "must be a string" }));
  const { client } = await start(t, [refusal(400, "INVALID_REQUEST", { issues })]);
  const where = "merchant: must be a string; store: must be a string";
  fits(t, await fail(client.redeem(body)), { message: `redeem: INVALID_REQUEST (400): No. (${where})` });
});

t.test("a refusal is thrown at once, with the code and the details of its code", async (t) => {
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

  const wrong = await start(t, [refusal(429, "RATE_LIMITED", { limit: "wrong_codes" }, { "retry-after": "1" })]);
  const other = await fail(wrong.client.redeem(body));
  t.equal(isRefused(other, "RATE_LIMITED") && other.details.limit === "wrong_codes", true);
  t.equal(wrong.received.length, 1, "a wrong code stays wrong");
});

t.test("after the last attempt the error of that attempt is thrown", async (t) => {
  const refused = await start(t, [cut, busy], { attempts: 3 });
  fits(t, await fail(refused.client.redeem(body)), { name: "RefusedError", code: "UNAVAILABLE" });
  const lost = await start(t, [cut], { attempts: 2 });
  const unanswered = { name: "UnansweredError", status: null, cause: { code: "ECONNRESET" } };
  fits(t, await fail(lost.client.redeem(body)), unanswered);
  t.strictSame([refused.received.length, lost.received.length], [3, 2]);
});

t.test("an error says whether the write may have taken effect: an unrecorded refusal leaves that open", async (t) => {
  const late = { "retry-after": "99" };
  const limited = refusal(429, "RATE_LIMITED", null, late);
  const cases: [Script[], boolean][] = [
    [[refusal(409, "COUPON_LOCKED")], false],
    [[limited], false],
    [[refusal(401, "UNAUTHENTICATED")], false],
    [[refusal(409, "REQUEST_IN_PROGRESS", null, late)], true],
    [[asksToWait(99)], true],
    [[refusal(500, "INTERNAL_ERROR", null, late)], true],
    [[answer(502, {}, late)], true],
    [[cut, refusal(409, "COUPON_LOCKED")], false],
    [[cut, refusal(404, "NOT_FOUND")], false],
    [[cut, refusal(404, "ROUTE_NOT_FOUND")], true],
    [[cut, refusal(400, "INVALID_REQUEST")], true],
    [[cut, refusal(401, "UNAUTHENTICATED")], true],
    [[cut, refusal(422, "COUPON_CODE_INVALID")], true],
    [[cut, refusal(422, "IDEMPOTENCY_KEY_REUSED")], true],
    [[cut, limited], true],
    [[busy, limited], true],
    [[refusal(429, "RATE_LIMITED"), refusal(401, "UNAUTHENTICATED")], false],
    [[refusal(401, "NONCE_REUSED"), limited], true],
    [[refusal(401, "NONCE_REUSED"), refusal(409, "COUPON_LOCKED")], false],
    [[cut, refusal(403, "OF_A_GATEWAY")], true],
  ];
  const tryOne = async ([scripts, expected]: [Script[], boolean], index: number) => {
    const { client, received } = await start(t, scripts);
    const error = (await fail(client.redeem(body))) as RefusedError | UnansweredError;
    t.strictSame([received.length, error.mayHaveTakenEffect], [scripts.length, expected], `case ${index}`);
  };
  await Promise.all(cases.map(tryOne));
});

// Returns the waits between attempts, which end at once.
function recordRetries(t: Test, random: number): number[] {
  const { mock: fixed } = mock.method(Math, "random", () => random);
  t.teardown(() => fixed.restore());
  return recordWaits(t);
}

t.test("the wait is a random part of a time that doubles from 200 ms up to 5 seconds", async (t) => {
  for (const [random, expected] of [
    [0.5, [100, 200, 400, 800, 1_600, 2_500, 2_500]],
    [0.25, [50, 100, 200, 400, 800, 1_250, 1_250]],
  ] as const)
    await t.test(`the part is ${random}`, async (t) => {
      const { client } = await start(t, [busy], { attempts: 8, timeoutMs: 60_000 });
      const waits = recordRetries(t, random);
      fits(t, await fail(client.getBatch({ batch: "b" })), { code: "UNAVAILABLE" });
      t.strictSame(waits, expected);
    });
});

t.test("a call has 5 attempts by default, and waits up to 30 seconds if the service asks for that", async (t) => {
  const waits = recordRetries(t, 0.5);
  const often = await start(t, [busy], { timeoutMs: 60_000 });
  fits(t, await fail(often.client.getBatch({ batch: "b" })), { code: "UNAVAILABLE" });
  t.equal(often.received.length, 5);
  waits.length = 0;
  const long = await start(t, [asksToWait(30), asksToWait(31), busy], { timeoutMs: 60_000 });
  fits(t, await fail(long.client.getBatch({ batch: "b" })), { retryAfterMs: 31_000 });
  t.strictSame(waits, [30_100]);
});

t.test("Retry-After is waited out, unless it is longer than the caller allows", async (t) => {
  const waits = recordRetries(t, 0);
  const { client } = await start(t, [asksToWait(1), answer(200, done)]);
  await client.redeem(body);
  t.strictSame(waits, [1_000]);
  const hurried = await start(t, [asksToWait(1), answer(200, done)], { longestWaitMs: 999 });
  fits(t, await fail(hurried.client.redeem(body)), { code: "UNAVAILABLE", retryAfterMs: 1_000 });
  t.equal(hurried.received.length, 1);
  const dated = await start(t, [asksToWait(new Date(Date.now() + 100_000).toUTCString())]);
  t.ok(((await fail(dated.client.redeem(body))) as RefusedError).retryAfterMs! > 90_000);
  // A till with a wrong clock: the date counts by the clock of the answer.
  const past = asksToWait("Sun, 06 Nov 1994 08:49:37 GMT", { date: "Sun, 06 Nov 1994 08:47:57 GMT" });
  const early = await start(t, [past]);
  fits(t, await fail(early.client.redeem(body)), { retryAfterMs: 100_000 });
});

t.test("a wait or time-out that is longer than a timer of Node does not end at once", async (t) => {
  const enough = new AbortController();
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  t.teardown(() => process.off("warning", onWarning));
  const month = await start(t, [asksToWait(2_592_000), answer(200, done)], {
    longestWaitMs: Infinity,
    onReply: () => setTimeout(() => enough.abort(new Error("enough")), 100),
  });
  fits(t, await fail(month.client.redeem(body, { signal: enough.signal })), { message: "enough" });
  const slow: Script = (response) => setTimeout(() => answer(200, done)(response), 200);
  const patient = await start(t, [slow], { timeoutMs: Infinity });
  t.strictSame(await patient.client.redeem(body), done);
  t.strictSame([month.received.length, patient.received.length, warnings], [1, 1, []]);
});

t.test("an answer has 10 seconds by default, and a download as long for each wait for bytes", async (t) => {
  const content = answer(200, {}, { etag: `"${"0".repeat(64)}"`, "content-length": "2" });
  const { client } = await start(t, [answer(200, {}), content]);
  const started = mock.method(globalThis, "setTimeout");
  t.teardown(() => started.mock.restore());
  const limits = () => [...new Set(started.mock.calls.map((call) => call.arguments[1]))];
  await client.getBatch({ batch: "b" });
  t.strictSame(limits(), [10_000]);
  started.mock.resetCalls();
  const { body: download } = await client.getReconciliation({ href: "/file" });
  await fail(download.toArray());
  t.strictSame(limits(), [10_000]);
});

t.test("a service that does not answer in time is asked again, and an answer of somebody else is none", async (t) => {
  const late = await start(t, [hang, answer(200, done)], { timeoutMs: 500 });
  t.strictSame(await late.client.redeem(body), done);
  // On a busy machine the second answer may be late too.
  t.ok(late.received.length >= 2);
  const page =
    (status: number): Script =>
    (response) =>
      void response.writeHead(status, { "content-type": "text/html" }).end("<h1>Welcome to the hotel</h1>");
  const proxied = await start(t, [page(502), page(200), answer(200, done)]);
  t.strictSame(await proxied.client.redeem(body), done);
  const login = await start(t, [page(403)]);
  fits(t, await fail(login.client.redeem(body)), { name: "UnansweredError", status: 403 });
  t.equal(login.received.length, 1);
});

t.test("with a wrong clock, the client follows the time of the service from then on", async (t) => {
  const serverTime = "2030-01-02T03:04:05.678Z";
  const late = refusal(401, "TIMESTAMP_OUT_OF_WINDOW", { server_time: serverTime });
  const { client, received } = await start(t, [late, answer(200, done)]);
  await client.redeem(body);
  await client.redeem(body);
  const offsets = received.map(({ headers }) => Number(headers["x-svc-timestamp"]) - Date.parse(serverTime) / 1000);
  t.strictSame(
    offsets.map((offset) => Math.abs(offset) < 100),
    [false, true, true],
  );
});

t.test("path, query and headers carry what the caller gave, and onReply sees each answer", async (t) => {
  const seen: ReplyInfo[] = [];
  const replayed = answer(200, done, { "idempotent-replayed": "true" });
  const { client, received } = await start(t, [answer(200, done), busy, replayed], {
    onReply: (one) => seen.push(one),
  });
  await client.getRequest({ request_id: "a/b ü?" });
  await client.redeem(body, { idempotencyKey: "größe-1 €" });
  const usual = { operation: "redeem", requestId: "r-1" };
  t.strictSame(seen.slice(1), [
    { ...usual, attempt: 1, status: 503, isReplay: false },
    { ...usual, attempt: 2, status: 200, isReplay: true },
  ]);
  await client.pullEvents({ cursor: "cur_+&=", limit: 7 });
  await client.pullEvents({ cursor: "" });
  await client.pullEvents();
  const targets = [...new Set(received.map(({ target }) => target))];
  const [request, redeem] = ["/v1/requests/a%2Fb%20%C3%BC%3F", "/v1/coupons/redeem"];
  t.strictSame(targets, [request, redeem, "/v1/events?cursor=cur_%2B%26%3D&limit=7", "/v1/events"]);
  const key = received[1]!.headers["idempotency-key"] as string;
  t.equal(Buffer.from(key, "latin1").toString(), "größe-1 €", "in UTF-8");
  t.equal(received[0]!.headers["content-type"], undefined);
});

t.test("no error has a code or the secret", async (t) => {
  const options = { attempts: 1, timeoutMs: 50 };
  const url = `http://127.0.0.1:${await findFreePort()}`;
  const refused = await start(t, [refusal(422, "COUPON_CODE_INVALID")], options);
  const clients = {
    refused: refused.client,
    cut: (await start(t, [cut], options)).client,
    late: (await start(t, [hang], options)).client,
    "not JSON": (await start(t, [(response) => response.end(`{"${coupon}`)], options)).client,
    "no service": createClient({ url, accessKey, secret, ...options }),
    "not TLS": createClient({ url: refused.url.replace("http", "https"), accessKey, secret, ...options }),
  };
  for (const [name, client] of Object.entries(clients)) {
    const error = await fail(client.redeem(body));
    t.ok(error instanceof RefusedError || error instanceof UnansweredError, `${name}: ${error.name}`);
    const shown = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error);
    t.notOk(shown.includes(coupon) || shown.includes(secret), name);
    t.notOk(inspect(client, { depth: 20, showHidden: true }).includes(secret), "nor has the client");
  }
  const wrong = await fail(refused.client.redeem(body, { idempotencyKey: `${coupon}\n` }));
  t.ok(wrong instanceof TypeError, "Node refuses the header");
  t.notOk(inspect(wrong, { depth: 20 }).includes(coupon));
});

t.test("an aborted call ends with the reason of its signal, in an answer, between attempts, in a list", async (t) => {
  const reason = new Error("the cashier gave up");
  const { client, received } = await start(t, [hang], { attempts: 1 });
  const detail = "/v1/reconciliations/a/detail";
  const calls: [target: string, call: (options: CallOptions) => Promise<unknown>][] = [
    ["/v1/coupons/redeem", (options) => client.redeem(body, options)],
    ["/v1/events", (options) => client.eventPages({}, options).next()],
    ["/v1/reconciliations", (options) => client.reconciliationPages({}, options).next()],
    [detail, (options) => client.getReconciliation({ date: "a", kind: "detail" }, options)],
    ["/file", (options) => client.getReconciliation({ href: "/file" }, options)],
  ];
  for (const [target, call] of calls) {
    const abort = new AbortController();
    const error = fail(call({ signal: abort.signal }));
    await waitUntil(target, () => received.at(-1)?.target === target);
    abort.abort(reason);
    t.equal(await error, reason, target);
  }
  const abort = new AbortController();
  const onReply = () => setImmediate(() => abort.abort(reason));
  const waiting = await start(t, [asksToWait(20)], { onReply });
  t.equal(await fail(waiting.client.redeem(body, { signal: abort.signal })), reason);
  t.equal(waiting.received.length, 1);
});

t.test("a URL may have an IPv6 address in brackets", { skip: lacksIpv6 }, async (t) => {
  const { client, url, received } = await start(t, [answer(200, done)], { host: "::1", attempts: 1 });
  t.strictSame(await client.redeem(body), done);
  t.equal(`http://${received[0]!.headers.host}`, url);
});

t.test("a URL with a path, and one of another protocol, are refused", async (t) => {
  for (const url of ["http://h/v2", "http://h/?a", "http://user:x@h", "ftp://h", "coupons.example"])
    t.throws(() => createClient({ url, accessKey, secret }), { name: "TypeError" }, url);
});

t.test("hundreds of calls, 64 at once, leave no socket, listener or timer behind", async (t) => {
  const atOnce = 64;
  // Every tenth call is refused, and one in fifty is repeated.
  const scripts = Array.from({ length: 50 }, (_, index) => {
    if (index === 25) return busy;
    return index % 10 === 0 ? refusal(409, "COUPON_REDEEMED") : answer(200, { ok: true });
  });
  const agent = new Agent({ keepAlive: true });
  // A repeat after a time-out would take a new connection.
  const { client, sockets } = await start(t, scripts, { isRepeating: true, agent, timeoutMs: 120_000 });
  const { signal } = new AbortController();
  const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const timers = countTimers();
  for (let round = 0; round < 6; round += 1)
    await Promise.allSettled(Array.from({ length: atOnce }, () => client.redeem(body, { signal })));

  t.ok(sockets.opened <= atOnce, `${sockets.opened} connections in all`);
  const free = Object.values(agent.freeSockets).flat();
  t.equal(free.length, sockets.opened, "every connection is free again");
  for (const socket of free)
    for (const event of socket!.eventNames())
      if (socket!.listenerCount(event) > 3) t.fail(`listeners of ${String(event)}`);
  t.strictSame(getEventListeners(signal, "abort"), []);
  t.ok(countTimers() <= timers + 1, "the server has one");
  agent.destroy();
  await waitUntil("the server to lose all connections", () => sockets.open === 0);
});

t.test("close() ends the connections of the client's own agent", async (t) => {
  const { client, sockets } = await start(t, [answer(200, { ok: true })]);
  await client.redeem(body);
  await client.redeem(body);
  t.strictSame(sockets, { opened: 1, open: 1 });
  client.close();
  await waitUntil("the server to lose the connection", () => sockets.open === 0);
});

const hashOf = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");
const content = "a,b\r\n1,2\r\n";
const sha256 = hashOf(content);
const etag = { etag: `"${sha256}"` };
const length = { "content-length": String(content.length) };
const file = { href: "/v1/reconciliations/2026-11-22/detail" };

async function download(t: Test, script: Script, listed?: string, timeoutMs = 60_000) {
  const { client, received, sockets } = await start(t, [script], { timeoutMs });
  const got = await client.getReconciliation({ ...file, ...(listed !== undefined && { sha256: listed }) });
  return { got, received, sockets };
}

t.test("a download fails at its end if a byte is missing, too many or wrong", async (t) => {
  const sends =
    (headers: Record<string, string>, sent: string, isCut = false): Script =>
    (response) => {
      response.writeHead(200, { "content-type": "text/csv", ...headers }).write(sent);
      if (isCut) setTimeout(() => response.destroy(), 20);
      else response.end();
    };
  const whole = sends({ ...length, ...etag }, content);
  t.equal(await text((await download(t, whole, sha256)).got.body), content);
  const silent: Script = (response) => void response.writeHead(200, { ...length, ...etag }).write("a");
  const broken: [string, RegExp, script: Script, listed?: string | undefined, timeoutMs?: number][] = [
    ["cut", /broke off after 5 of 10 bytes/, sends({ ...length, ...etag }, "a,b\r\n", true)],
    ["a wrong byte", /sha256/, sends({ ...length, ...etag }, content.replace("2", "3"))],
    ["another file than in the list", /sha256/, whole, "0".repeat(64)],
    ["silence", /broke off after 1/, silent, undefined, 1_000],
  ];
  for (const [name, message, ...sent] of broken) {
    const { got } = await download(t, ...sent);
    await t.rejects(text(got.body), message, name);
    t.ok(got.body.errored instanceof DownloadError, name);
  }
  await t.rejects(download(t, sends(etag, content)), DownloadError, "no length");
  await t.rejects(download(t, sends(length, content)), DownloadError, "no hash");
});

t.test("a refused download is repeated or thrown like any call, and its connection is used again", async (t) => {
  const missing = refusal(404, "NOT_FOUND", { resource: "reconciliation" });
  const { client, received, sockets } = await start(t, [busy, missing], { timeoutMs: 60_000 });
  const error = await fail(client.getReconciliation(file));
  fits(t, error, { name: "RefusedError", code: "NOT_FOUND", details: { resource: "reconciliation" } });
  t.equal(received.length, 2);
  t.strictSame(sockets, { opened: 1, open: 1 });
});

t.test("the time in which the reader pauses is not time without an answer", async (t) => {
  const sent = Buffer.alloc(4_000_000, "a");
  const headers = { "content-length": String(sent.length), etag: `"${hashOf(sent)}"` };
  const timeoutMs = 2_000;
  const script: Script = (response) => void response.writeHead(200, headers).end(sent);
  const { got, received } = await download(t, script, undefined, timeoutMs);
  // Longer than the time-out: before the first byte, and in the middle of a file that no buffer holds.
  await sleep(1.2 * timeoutMs);
  let bytes = 0;
  for await (const chunk of got.body as AsyncIterable<Buffer>) {
    if (bytes === 0) await sleep(1.2 * timeoutMs);
    bytes += chunk.length;
  }
  t.strictSame([bytes, received.length], [sent.length, 1]);
});

t.test("a download that nobody reads gives its connection back", async (t) => {
  const endless: Script = (response) =>
    void response.writeHead(200, { "content-length": "1000000", ...etag }).write("x".repeat(1_000));
  const { got, sockets } = await download(t, endless);
  t.equal(sockets.open, 1);
  got.body.destroy();
  await waitUntil("the connection to end", () => sockets.open === 0, { withinMs: 10_000 });
});
