// The node server under the app: its limits and time-outs, its answers to bytes that never become a request, and
// clients that leave, say nothing, send slowly or read nothing.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, readFileSync } from "node:fs";
import type { Server, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { newNonce, signedHeaders } from "../../clients/typescript/src/signature.ts";
import { defaultLimits, type Limits } from "../../src/config/config.ts";
import type { Outcome } from "../../src/gate/gate.ts";
import { listen, type Handler } from "../../src/http/listener.ts";
import { createCaller, type Caller, type Coupon } from "../support/caller.ts";
import { closeIdleConnections, createClient, openConnection, sendBytes, sendPlain } from "../support/client.ts";
import { leaveUnchecked } from "../support/described-answers.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, launch } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { stopClock } from "../support/stop-clock.ts";
import { bodies, createStubLog, done, lockPath, secret, startStub } from "../support/stub.ts";
import { secretOf } from "../support/tenants.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const health = "GET /healthz HTTP/1.1\r\nhost: x\r\n";
const posted = `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
const slowBody = `${posted}content-length: 100\r\n\r\n{`;

type Signing = { itsSecret?: string; method?: string; target?: string };

// Without the blank line that ends it.
function signedHead(
  accessKey: string,
  { itsSecret = secret, method = "GET", target = "/v1/batches/bat_1" }: Signing = {},
) {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signed = { method, target, timestamp, nonce: newNonce(), body: Buffer.alloc(0) };
  const headers = Object.entries(signedHeaders({ accessKey, secret: itsSecret }, signed));
  const lines = [`${method} ${target} HTTP/1.1`, "host: x", ...headers.map((header) => header.join(": "))];
  return `${lines.join("\r\n")}\r\n`;
}

const signedGet = (accessKey: string, options?: Signing) => `${signedHead(accessKey, options)}\r\n`;

const closed = (socket: Socket) =>
  waitFor("the close", new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once("close", resolve))));

// Calls of the gate that end when the test says so.
function holdCalls() {
  const finish: (() => void)[] = [];
  const hold = () => new Promise<Outcome>((resolve) => finish.push(() => resolve(done)));
  return { finish, hold };
}

// A server with this handler, and the requests that have begun, each with the node server that it came to.
async function listenWith(t: Test, handler: Handler | null, limits: Partial<Limits> = {}) {
  const started = "http.server.request.start";
  const begun: { response: ServerResponse; server: Server }[] = [];
  const note = (message: unknown) => void begun.push(message as (typeof begun)[number]);
  subscribe(started, note);
  t.teardown(() => unsubscribe(started, note));
  const { logger, log } = createStubLog();
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: { ...defaultLimits, ...limits } }, logger);
  t.teardown(() => {
    closeIdleConnections();
    return listening.stop();
  });
  if (handler !== null) {
    leaveUnchecked(listening.url, [204, 500]);
    listening.serve({ handler });
  }
  const send = (target: string, method = "GET") => sendPlain(listening.url, method, target);
  return { listening, begun, log, send };
}

t.test("A slow head, a missing head and a slow body get 408 in time", async (t) => {
  const { url, log } = await startStub(t, {}, { headersTimeoutSeconds: 1, requestTimeoutSeconds: 2 });
  const [silent, slow, body] = await Promise.all([1, 2, 3].map(() => openConnection(t, url)));
  slow!.socket.write(health);
  const dripping = setInterval(() => slow!.socket.write("x: y\r\n"), 200);
  t.teardown(() => clearInterval(dripping));
  body!.socket.write(slowBody);
  for (const { events, received } of [silent!, slow!, body!]) {
    await waitUntil("the end", () => events.length > 0, { withinMs: 20_000 });
    t.match(received(), /^HTTP\/1.1 408 [^]*x-request-id: req_[^]*"code":"INVALID_REQUEST"/);
  }
  t.equal(log.filter(({ status }) => status === 408).length, 3, "each one is logged");
});

t.test(
  "A head has 10 s to arrive and a request 30 s; a connection is idle for 65 s and stalled for 60 s",
  async (t) => {
    const timeOutsOf = async (limits: Partial<Limits>) => {
      const { begun, send } = await listenWith(t, (_, response) => response.writeHead(204).end(), limits);
      const { headers } = await send("/");
      const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = begun.at(-1)!.server;
      return [headersTimeout, requestTimeout, keepAliveTimeout, timeout, headers["keep-alive"]];
    };
    t.strictSame(await timeOutsOf({}), [10_000, 30_000, 65_000, 60_000, "timeout=65"]);
    const others = { headersTimeoutSeconds: 2, requestTimeoutSeconds: 3, keepAliveTimeoutSeconds: 4 };
    t.strictSame(await timeOutsOf(others), [2_000, 3_000, 4_000, 60_000, "timeout=4"]);
  },
);

t.test("A stop cuts an answer that has not ended 5 s later", async (t) => {
  const { listening, begun } = await listenWith(t, (_, response) => response.writeHead(200).write("a part"));
  const client = await openConnection(t, listening.url);
  client.socket.write(`${health}\r\n`);
  await waitUntil("the part", () => client.received().includes("a part"));
  const { server, response } = begun[0]!;
  const socket = response.socket!;
  const clock = stopClock(t, { hasTimers: true });
  const stopping = listening.stop();
  await waitUntil("the end of listening", () => !server.listening);
  clock.pass(4_999);
  const wasCut = socket.destroyed;
  clock.pass(1);
  t.strictSame([wasCut, socket.destroyed], [false, true]);
  // Ends the stop all the same if the answer was not cut.
  socket.destroy();
  await waitFor("the stop", stopping);
});

t.test("One connection too many replaces one that never authenticated, else it is closed at once", async (t) => {
  const { url, asA } = await startStub(t, {}, { connections: 1 });
  const { socket: silent } = await openConnection(t, url);
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
  await closed(silent.end());
  // The place belongs to a caller now.
  await closed(
    connect(Number(new URL(url).port))
      .on("error", () => {})
      .resume(),
  );
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
});

t.test("Requests beyond openRequests get 503 at once; a request counts once it is fully received", async (t) => {
  const { finish, hold } = holdCalls();
  const { url, asA, asB, lock, log } = await startStub(t, { perform: hold }, { openRequests: 2 });
  for (let count = 0; count < 4; count += 1) (await openConnection(t, url)).socket.write(slowBody);
  const two = [lock(), asB.get("/v1/batches/bat_1")];
  await waitUntil("two calls", () => finish.length === 2);
  fits(t, await lock(), { status: 503, json: { code: "UNAVAILABLE" }, headers: { "retry-after": "1" } });
  fits(t, log.at(-1), { reason: "too many requests at once" });
  for (const end of finish) end();
  for (const each of await Promise.all(two)) t.equal(each.status, 200);
  const fourth = asA.get("/v1/batches/bat_1");
  await waitUntil("the third call", () => finish.length === 3);
  finish[2]!();
  t.equal((await fourth).status, 200);
});

t.test("A tenant has at most half of the open requests; another tenant's still get answers", async (t) => {
  const { finish, hold } = holdCalls();
  const perform = async (tenantId: number) => (tenantId === 7 && finish.length < 2 ? hold() : done);
  const { asA, asB, lock, log } = await startStub(t, { perform }, { openRequests: 3 });
  const running = [lock(), asA.get("/v1/batches/bat_1")];
  await waitUntil("two calls", () => finish.length === 2);
  for (const what of ["the third", "a refused one gives its place back"]) {
    fits(t, await lock(), { status: 503, headers: { "retry-after": "1" } }, what);
    fits(t, log.at(-1), { reason: "too many requests of the tenant at once" });
    t.equal((await asB.post(lockPath, bodies[lockPath])).status, 200, "of the other tenant");
  }
  finish.shift()!();
  t.equal((await Promise.race(running)).status, 200);
  running.push(lock());
  await waitUntil("one more call", () => finish.length === 2);
  for (const end of finish) end();
  for (const { status } of await Promise.all(running)) t.equal(status, 200);
});

t.test("The maximum sizes of body and head are settings", async (t) => {
  const { url, asA } = await startStub(t, {}, { bodyBytes: 2_000, headerBytes: 2_000 });
  const ofSize = (size: number) => asA.post(lockPath, JSON.stringify(bodies[lockPath]).padEnd(size, " "));
  t.equal((await ofSize(2_000)).status, 200);
  fits(t, await ofSize(2_001), { status: 413, json: { code: "PAYLOAD_TOO_LARGE" } });
  const tooLong = await sendBytes(url, `${health}x: ${"y".repeat(2_000)}\r\n\r\n`);
  t.match(tooLong, /^HTTP\/1.1 431 [^]*"code":"PAYLOAD_TOO_LARGE"/);
});

t.test("Unusual requests get the usual answer, with a request_id that is in the log", async (t) => {
  const { url, log } = await startStub(t);
  const cases: [bytes: string, expected: RegExp, code: string | undefined][] = [
    ["GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n", /^HTTP\/1.1 400 [^]*"path":"host"/, "INVALID_REQUEST"],
    ["CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n", /^HTTP\/1.1 404 /, "ROUTE_NOT_FOUND"],
    ["nonsense\r\n\r\n", /^HTTP\/1.1 400 [^]*^cache-control: no-store\r$/m, "INVALID_REQUEST"],
    [`${health}expect: a miracle\r\nconnection: close\r\n\r\n`, /^HTTP\/1.1 200 /, undefined],
    [`${health}connection: upgrade\r\nupgrade: websocket\r\nconnection: close\r\n\r\n`, /^HTTP\/1.1 200 /, undefined],
    ["GET /healthz HTTP/1.0\r\n\r\n", /^HTTP\/1.1 200 /, undefined],
  ];
  for (const [bytes, expected, code] of cases) {
    const answer = await sendBytes(url, bytes);
    t.match(answer, expected, bytes.slice(0, 30));
    if (code !== undefined) t.match(answer, `"code":"${code}"`);
    const id = /x-request-id: (req_[0-9a-z]{26})\r\n/.exec(answer)?.[1];
    const line = log.find(({ request_id }) => request_id === id);
    t.ok(line !== undefined && (code === undefined || line["code"] === code), "in the log");
  }
});

t.test("A head that two programs could understand differently is refused, as RFC 9112 says", async (t) => {
  const { url, log, lookups } = await startStub(t);
  const chunked = "transfer-encoding: chunked\r\n";
  // The lines of a POST after the first one, without the type of its body.
  const refused: [head: string, status: number, path: string, version?: string][] = [
    ["host: x\r\nhost: x\r\n", 400, "host"],
    ["host: x\r\nHost: y\r\n", 400, "host"],
    ["host: x\r\nhost: y\r\n", 400, "host", "1.0"],
    ...["a b", "user@x", "http://x", "x/y", "[::1", "::1", "x:y", "x\u00e4"].map((host): [string, number, string] => [
      `host: ${host}\r\n`,
      400,
      "host",
    ]),
    ["host: x\r\ncontent-type: application/json\r\n", 400, "content-type"],
    ["host: x\r\nCONTENT-TYPE: text/plain\r\n", 400, "content-type"],
    ["host: x\r\ntransfer-encoding: gzip, chunked\r\n", 501, "transfer-encoding"],
    ["host: x\r\ntransfer-encoding: identity, chunked\r\n", 501, "transfer-encoding"],
    [`host: x\r\ntransfer-encoding: gzip\r\n${chunked}`, 501, "transfer-encoding"],
    // Node itself refuses these.
    [`host: x\r\n${chunked}transfer-encoding: gzip\r\n`, 400, "(request)"],
    [`host: x\r\n${chunked}${chunked}`, 400, "(request)"],
    [`host: x\r\n${chunked}content-length: 3\r\n`, 400, "(request)"],
    ["host: x\r\ncontent-length: 1\r\ncontent-length: 1\r\n", 400, "(request)"],
    [chunked, 400, "transfer-encoding", "1.0"],
    ["host: x\r\n", 505, "(request)", "2.0"],
    ["host: x\r\n", 505, "(request)", "0.9"],
  ];
  const post = (head: string, version = "1.1") =>
    sendBytes(
      url,
      `POST ${lockPath} HTTP/${version}\r\ncontent-type: application/json\r\nconnection: close\r\n${head}\r\n`,
    );
  for (const [head, status, path, version] of refused) {
    const answer = await post(head, version);
    t.ok(answer.startsWith(`HTTP/1.1 ${status} `), `${head}: ${answer}`);
    fits(t, JSON.parse(answer.split("\r\n\r\n")[1]!), { code: "INVALID_REQUEST", details: { issues: [{ path }] } });
  }
  fits(t, log.at(-1), { status: 505, code: "INVALID_REQUEST" });
  for (const coding of ["chunked", "Chunked", ", chunked"])
    t.match(await post(`host: x\r\ntransfer-encoding: ${coding}\r\n\r\n0\r\n`), /^HTTP\/1.1 401 /, coding);
  t.strictSame(lookups, [], "before anything is asked");
});

t.test("Unreadable bytes after a waiting request are not answered in place of that request", async (t) => {
  const { finish, hold } = holdCalls();
  const { url } = await startStub(t, { perform: hold });
  const { socket, received } = await openConnection(t, url);
  // Only after a request with a valid signature does the server read on while a request waits.
  socket.write(signedGet("ak_a"));
  await waitUntil("a call", () => finish.length === 1);
  finish[0]!();
  await waitUntil("its answer", () => received().includes("ok"), { withinMs: 20_000 });
  const before = received();
  socket.write(`${signedGet("ak_a")}nonsense\r\n\r\n`);
  await waitUntil("the cut", () => socket.readableEnded || socket.destroyed, { withinMs: 20_000 });
  t.equal(received(), before, "the connection is cut, so the caller knows that the outcome is unknown");
  finish[1]?.();
});

t.test(
  "A client that ends its side after its requests gets its answers, and then the end of the connection",
  async (t) => {
    const asked: ((credential: null) => void)[] = [];
    const findCredential = () => new Promise<null>((resolve) => asked.push(resolve));
    const { url } = await startStub(t, { findCredential });
    // Reads to the end of the connection.
    const send = async (bytes: string) => {
      const { socket, received, events } = await openConnection(t, url);
      socket.end(bytes);
      await waitUntil("the end", () => events.includes("end"));
      return received();
    };
    const [one, two] = [send(signedGet("ak_1")), send(signedGet("ak_2") + signedGet("ak_3"))];
    await waitUntil("two calls", () => asked.length === 2);
    // The server has read their ends before it answers this.
    for (let turn = 0; turn < 2; turn += 1) await sendPlain(url, "GET", "/healthz");
    for (const resolve of asked.splice(0)) resolve(null);
    await waitUntil("the second call of a connection", () => asked.length === 1);
    asked[0]!(null);
    const count = (answers: string) => answers.match(/HTTP\/1.1 (200|401) /g)?.length;
    t.strictSame([count(await one), count(await two)], [1, 2]);
    t.equal(count(await send(`${health}\r\n`)), 1, "an answer that was sent already");
    t.equal(await send(""), "", "without a request");
    t.match(await send("GET /hea"), /^HTTP\/1.1 400 /, "with a part of one");
  },
);

t.test("While the program starts, /healthz is 200, and any other request waits a second for its 503", async (t) => {
  const { listening, log, send } = await listenWith(t, null);
  fits(t, await send("/healthz"), { status: 200, text: '{"ok":true}' });
  for (const { status, headers, json } of await Promise.all([send("/readyz"), send(lockPath, "POST")])) {
    fits(t, { status, headers, json }, { status: 503, headers: { "retry-after": "1" }, json: { code: "UNAVAILABLE" } });
    t.equal(headers["x-request-id"], json.request_id);
    t.equal(log.filter(({ request_id, status: logged }) => request_id === json.request_id && logged === 503).length, 1);
  }
  const waiting = send("/readyz");
  leaveUnchecked(listening.url, [204]);
  listening.serve({ handler: (_, response) => void response.writeHead(204).end() });
  t.equal((await waiting).status, 204, "a request that waits is served");
  t.equal((await send("/healthz")).status, 204);
});

t.test("An error that the handler misses costs one answer, not the program", async (t) => {
  const { log, send } = await listenWith(t, (request, response) => {
    if (request.url === "/throw") throw new Error("/throw");
    if (request.url === "/reject") return Promise.reject(new Error("/reject"));
    if (request.url === "/late") return Promise.reject(response.writeHead(200).write("a part"));
    return response.writeHead(204).end();
  });
  for (const target of ["/throw", "/reject"]) {
    const { status, headers, json } = await send(target);
    fits(t, { status, json }, { status: 500, json: { code: "INTERNAL_ERROR", request_id: headers["x-request-id"] } });
    fits(t, log.splice(0), [
      { level: 50, err: { message: target } },
      { request_id: headers["x-request-id"] as string, status: 500 },
    ]);
  }
  await t.rejects(send("/late"), "a half-sent answer is cut");
  t.equal((await send("/")).status, 204);
});

// Badly behaved clients. They ignore how the service treats them.

type Held = { open(): number; letGo(): void };

async function tryToConnect(url: string): Promise<Socket | null> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(socket)).once("close", () => resolve(null));
  });
}

async function each(count: number, atOnce: number, one: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

// They leave in the middle of a body, or with the first bytes of an answer: half close, half reset.
async function leaveMidway(url: string, count: number, part: "body" | "answer"): Promise<void> {
  const begun = {
    body: () => `POST /v1/coupons/redeem HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`,
    answer: () => signedGet("ak_a", { itsSecret: secretOf("ak_a"), target: "/v1/events?limit=200" }),
  };
  // A client that asks for an answer costs as much as any other.
  await each(count, part === "body" ? 50 : 4, async (number) => {
    const socket = await tryToConnect(url);
    if (socket === null) return;
    socket.write(begun[part]());
    const coding = number % 3 === 0 ? "transfer-encoding: chunked\r\n\r\n400\r\n" : "content-length: 1024\r\n\r\n";
    if (part === "body") socket.write(`${coding}{"request_id":"`);
    const answered = new Promise((resolve) => socket.once("data", resolve).once("close", resolve));
    if (part === "answer" && number % 3 > 0) await waitFor("the first bytes", answered);
    else await sleep(number % 10);
    if (number % 2 === 0) socket.destroy();
    else socket.resetAndDestroy();
  });
}

// They stay connected. One that is cut connects again.
async function hold(url: string, count: number, begin: (socket: Socket, number: number) => void): Promise<Held> {
  const sockets = new Set<Socket>();
  let isOver = false;
  async function keep(number: number): Promise<void> {
    const socket = await tryToConnect(url);
    if (socket === null || isOver) return void socket?.destroy();
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(keep, 100, number).unref();
    });
    begin(socket, number);
  }
  await each(count, 50, keep);
  return {
    open: () => sockets.size,
    letGo() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

// Requests of one kind without end, whose answers nobody reads.
function pipeline(socket: Socket, number: number): void {
  const post = { method: "POST", target: "/v1/coupons/redeem", itsSecret: "a wrong secret" };
  const body = `content-type: application/json\r\ncontent-length: 60000\r\n\r\n${" ".repeat(60_000)}`;
  const pieces = `transfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(900)}0\r\n\r\n`;
  const targets = [
    "/docs/swagger-ui-bundle.js",
    "/docs/integrate",
    "/openapi/a.json",
    "/healthz",
    "/readyz",
    "/none",
    "/v1/events",
  ];
  const kinds = [
    ...targets.map((target) => `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`),
    "GET / HTTP/1.1\r\n\r\n",
    `POST /v1/coupons/redeem HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${pieces}`,
    signedHead("ak_a", post) + body,
    signedHead(`ak_${number}`, post) + body,
  ];
  const kind = kinds[number % kinds.length]!;
  const bytes = Buffer.from(kind.repeat(60_000 / kind.length + 1));
  const send = (): boolean => socket.write(bytes, () => socket.destroyed || send());
  socket.pause();
  send();
}

// Redeems and queries coupons, four at once, and returns how many calls were answered with 200.
async function shop(till: Caller, coupons: Coupon[]): Promise<number> {
  let served = 0;
  await each(coupons.length, 4, async (number) => {
    for (const operation of ["redeem", "query"] as const)
      if ((await till[operation](coupons[number]!)).status === 200) served += 1;
  });
  return served;
}

t.test(
  "A flood of clients that leave, idle or pipeline causes no crash, and every honest call is served",
  async (t) => {
    const world = await scenario(t);
    const { program, untilPrinted, stop } = launch(t, "serve", { env: environmentOf(world) });
    const [, url = ""] = await untilPrinted(/"url":"(\S+?)"/);
    const till = createCaller(createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") }), "mch_a");
    const coupons = await world.a.makeCoupons(250);
    const floods: [what: string, start: () => Promise<Held | void>][] = [
      ["200 leave in the middle of a body", () => leaveMidway(url, 200, "body")],
      ["100 leave in the middle of an answer", () => leaveMidway(url, 100, "answer")],
      ["400 say nothing", () => hold(url, 400, (socket) => socket.resume())],
      ["300 pipeline requests of every kind and read nothing", () => hold(url, 300, pipeline)],
    ];
    for (const [what, start] of floods) {
      // Clients that leave do so while the honest ones work; the others are connected before.
      const flood = start();
      if (!what.includes("leave")) await flood;
      t.equal(await shop(till, coupons.splice(0, 50)), 100, `${what}: every honest call is served`);
      const held = await flood;
      if (held && !what.includes("pipeline")) t.equal(held.open(), parseInt(what, 10), "all stay connected");
      held?.letGo();
    }
    // Linux keeps the largest size of a process.
    const peak = existsSync(`/proc/${program.pid}/status`) && readFileSync(`/proc/${program.pid}/status`, "utf8");
    if (peak) t.ok(Number(/^VmHWM:\s+(\d+) kB/m.exec(peak)![1]) < 450 * 1_024, "with less than 450 MiB of memory");
    t.equal((await sendPlain(url, "GET", "/readyz")).status, 200, "the process is ready");
    const { code, stdout, stderr } = await stop();
    t.strictSame([code, stderr], [0, ""]);
    // Some connections are reset before they reach the handler.
    const lines = stdout.split("\n").filter((line) => line.includes('"operation":"redeem"'));
    const cut = lines.filter((line) => line.includes('"status":400')).length;
    t.ok(cut >= 100 && cut <= 200, `${cut} bodies that ended early were given up, and the service waits for none`);
  },
);
