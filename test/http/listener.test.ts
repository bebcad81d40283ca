// The limits of the Node server under the app, and its answers to bytes that never become a request.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { defaultLimits } from "../../src/config/config.ts";
import type { Outcome } from "../../src/gate/gate.ts";
import { listen } from "../../src/http/listener.ts";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { sendBytes, sendPlain } from "../support/client.ts";
import { leaveUnchecked } from "../support/described-answers.ts";
import { fits } from "../support/fits.ts";
import { bodies, createStubLog, startStub } from "../support/stub.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const lockPath = "/v1/coupons/lock";
const health = "GET /healthz HTTP/1.1\r\nhost: x\r\n";

// An open connection on which nothing has been sent.
async function open(t: Test, url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // A refused connection is reset.
  socket.on("error", () => {});
  t.teardown(() => socket.destroy());
  await waitFor("a connection", once(socket, "connect"));
  return socket;
}
// Well-formed, with a signature that is wrong.
function signedGet(accessKey: string): string {
  const lines = [
    "GET /v1/batches/bat_1 HTTP/1.1",
    "host: x",
    `x-svc-access-key: ${accessKey}`,
    `x-svc-timestamp: ${Math.floor(Date.now() / 1000)}`,
    "x-svc-nonce: 0123456789abcdef",
    `x-svc-signature: ${"0".repeat(64)}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}
const closed = (socket: Socket) =>
  new Promise<void>((resolve) => (socket.closed ? resolve() : socket.once("close", () => resolve())));

t.test("A slow head, a missing head and a slow body get 408 in time", async (t) => {
  const { url, log } = await startStub(t, {}, { headersTimeoutSeconds: 1, requestTimeoutSeconds: 2 });
  const [silent, slow, body] = await Promise.all([open(t, url), open(t, url), open(t, url)]);
  slow.write("GET /healthz HTTP/1.1\r\nhost: x\r\n");
  const dripping = setInterval(() => slow.write("x: y\r\n"), 200);
  t.teardown(() => clearInterval(dripping));
  body.write(`POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`);
  const answers = await waitFor("the answers", Promise.all([silent, slow, body].map((socket) => text(socket))), {
    withinMs: 20_000,
  });
  for (const answer of answers) t.match(answer, /^HTTP\/1.1 408 [^]*x-request-id: req_[^]*"code":"INVALID_REQUEST"/);
  t.equal(log.filter(({ status }) => status === 408).length, 3, "each one is logged");
});

t.test("One connection too many replaces one that never authenticated, else it is closed at once", async (t) => {
  const { url, asA } = await startStub(t, {}, { connections: 1 });
  const silent = (await open(t, url)).resume();
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
  await closed(silent);
  // The place belongs to a caller now.
  await closed((await open(t, url)).resume());
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200);
});

t.test("Requests beyond openRequests get 503 at once; a request counts once it is fully received", async (t) => {
  const finish: (() => void)[] = [];
  const perform = () =>
    new Promise<Outcome>((resolve) =>
      finish.push(() => resolve({ status: 200, code: null, resource: null, body: '{"ok": true}', isReplay: false })),
    );
  const { url, asA, asB, log } = await startStub(t, { perform }, { openRequests: 2 });
  for (let count = 0; count < 4; count += 1)
    (await open(t, url)).write(
      `POST ${lockPath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    );
  const two = [asA.post(lockPath, bodies[lockPath]), asB.get("/v1/batches/bat_1")];
  await waitUntil("two calls", () => finish.length === 2);
  const third = await asA.post(lockPath, bodies[lockPath]);
  fits(t, third, { status: 503, json: { code: "UNAVAILABLE" }, headers: { "retry-after": "1" } });
  fits(t, log.at(-1), { reason: "too many requests at once" });
  for (const each of finish) each();
  for (const each of await Promise.all(two)) t.equal(each.status, 200);
  const fourth = asA.get("/v1/batches/bat_1");
  await waitUntil("the third call", () => finish.length === 3);
  finish[2]!();
  t.equal((await fourth).status, 200);
});

t.test("A tenant has at most half of the open requests; another tenant's still get answers", async (t) => {
  const finish: (() => void)[] = [];
  const perform = (tenantId: number) =>
    new Promise<Outcome>((resolve) => {
      const end = () => resolve({ status: 200, code: null, resource: null, body: '{"ok": true}', isReplay: false });
      if (tenantId === 7 && finish.length < 2) finish.push(end);
      else end();
    });
  const { asA, asB, log } = await startStub(t, { perform }, { openRequests: 3 });
  const running = [asA.post(lockPath, bodies[lockPath]), asA.get("/v1/batches/bat_1")];
  await waitUntil("two calls", () => finish.length === 2);
  for (const what of ["the third", "a refused one gives its place back"]) {
    fits(t, await asA.post(lockPath, bodies[lockPath]), { status: 503, headers: { "retry-after": "1" } }, what);
    fits(t, log.at(-1), { reason: "too many requests of the tenant at once" });
    t.equal((await asB.post(lockPath, bodies[lockPath])).status, 200, "of the other tenant");
  }
  finish.shift()!();
  t.equal((await Promise.race(running)).status, 200);
  running.push(asA.post(lockPath, bodies[lockPath]));
  await waitUntil("one more call", () => finish.length === 2);
  for (const end of finish) end();
  for (const { status } of await Promise.all(running)) t.equal(status, 200);
});

t.test("The maximum sizes of body and head are settings", async (t) => {
  const { url, asA } = await startStub(t, {}, { bodyBytes: 2_000, headerBytes: 2_000 });
  t.equal((await asA.post(lockPath, JSON.stringify(bodies[lockPath]).padEnd(2_000, " "))).status, 200);
  fits(t, await asA.post(lockPath, JSON.stringify(bodies[lockPath]).padEnd(2_001, " ")), {
    status: 413,
    json: { code: "PAYLOAD_TOO_LARGE" },
  });
  t.match(await sendBytes(url, `${health}x: ${"y".repeat(2_000)}\r\n\r\n`), /^HTTP\/1.1 431 /);
});

t.test("Unusual requests get the usual answer, with a request_id that is in the log", async (t) => {
  const { url, log } = await startStub(t);
  const cases: [bytes: string, expected: RegExp, code: string | undefined][] = [
    [
      "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n",
      /^HTTP\/1.1 400 [^]*"code":"INVALID_REQUEST"[^]*"path":"host"/,
      "INVALID_REQUEST",
    ],
    [
      "CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n",
      /^HTTP\/1.1 404 [^]*"code":"ROUTE_NOT_FOUND"/,
      "ROUTE_NOT_FOUND",
    ],
    ["nonsense\r\n\r\n", /^HTTP\/1.1 400 [^]*"code":"INVALID_REQUEST"/, "INVALID_REQUEST"],
    [`${health}expect: a miracle\r\nconnection: close\r\n\r\n`, /^HTTP\/1.1 200 /, undefined],
    [`${health}connection: upgrade\r\nupgrade: websocket\r\nconnection: close\r\n\r\n`, /^HTTP\/1.1 200 /, undefined],
    ["GET /healthz HTTP/1.0\r\n\r\n", /^HTTP\/1.1 200 /, undefined],
  ];
  for (const [bytes, expected, code] of cases) {
    const answer = await sendBytes(url, bytes);
    fits(t, answer, expected, bytes.slice(0, 30));
    const id = /x-request-id: (req_[0-9a-z]{26})\r\n/.exec(answer)?.[1];
    t.ok(
      log.some((line) => line["request_id"] === id && (code === undefined || line["code"] === code)),
      "in the log",
    );
  }
});

t.test("Unreadable bytes after a waiting request are not answered in place of that request", async (t) => {
  let finish = () => {};
  const findCredential = () =>
    new Promise<null>((resolve) => {
      finish = () => resolve(null);
    });
  const { url } = await startStub(t, { findCredential });
  const socket = await open(t, url);
  socket.write(`${signedGet("ak_a")}nonsense\r\n\r\n`);
  const answer = await text(socket).catch(() => "");
  t.equal(answer, "", "the connection is cut, so the caller knows that the outcome is unknown");
  finish();
});

t.test(
  "A client that ends its side after its requests gets its answers, and then the end of the connection",
  async (t) => {
    const asked: ((credential: null) => void)[] = [];
    const findCredential = () => new Promise<null>((resolve) => asked.push(resolve));
    const { url } = await startStub(t, { findCredential });
    const { hostname, port } = new URL(url);
    // Each reads to the end of the connection.
    const send = (bytes: string) => {
      const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
      t.teardown(() => socket.destroy());
      socket.end(bytes);
      return waitFor("the end", text(socket));
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
  const { logger, log } = createStubLog();
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, logger);
  t.teardown(() => listening.stop());
  const send = (method: string, target: string) => sendPlain(listening.url, method, target);
  fits(t, await send("GET", "/healthz"), { status: 200, text: '{"ok":true}' });
  const replies = await Promise.all([send("GET", "/readyz"), send("POST", lockPath)]);
  for (const { status, headers, json } of replies) {
    fits(t, { status, headers, json }, { status: 503, headers: { "retry-after": "1" }, json: { code: "UNAVAILABLE" } });
    t.equal(headers["x-request-id"], json.request_id);
    t.equal(log.filter(({ request_id, status: logged }) => request_id === json.request_id && logged === 503).length, 1);
  }
  const waiting = send("GET", "/readyz");
  leaveUnchecked(listening.url, [204]);
  listening.serve({ handler: (_, response) => void response.writeHead(204).end() });
  t.equal((await waiting).status, 204, "a request that waits is served");
  t.equal((await send("GET", "/healthz")).status, 204);
});

t.test("An error that the handler misses costs one answer, not the program", async (t) => {
  const { logger, log } = createStubLog();
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, logger);
  t.teardown(() => listening.stop());
  leaveUnchecked(listening.url, [204, 500]);
  listening.serve({
    handler(request, response) {
      if (request.url === "/throw") throw new Error("thrown");
      if (request.url === "/reject") return Promise.reject(new Error("rejected"));
      if (request.url === "/late") return Promise.reject(response.writeHead(200).write("a part"));
      return response.writeHead(204).end();
    },
  });
  for (const [target, message] of [
    ["/throw", "thrown"],
    ["/reject", "rejected"],
  ] as const) {
    const { status, headers, json } = await sendPlain(listening.url, "GET", target);
    fits(t, { status, json }, { status: 500, json: { code: "INTERNAL_ERROR", request_id: headers["x-request-id"] } });
    fits(t, log.find(({ level }) => level === 50)!["err"], { message });
    fits(t, log.pop(), { request_id: headers["x-request-id"], status: 500 });
    log.length = 0;
  }
  await t.rejects(sendPlain(listening.url, "GET", "/late"), "a half-sent answer is cut");
  t.equal((await sendPlain(listening.url, "GET", "/")).status, 204);
});
