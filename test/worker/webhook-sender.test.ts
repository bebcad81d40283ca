// Sending one webhook: what a receiver gets, and how its response becomes an outcome. Receivers that break HTTP, stall
// or send too much end as an outcome too, in time and with bounded memory.
import { getEventListeners } from "node:events";
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { createServer, type Socket } from "node:net";
import { mock } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import t, { type Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender, readRetryAfter, type Attempt } from "../../src/worker/webhook-sender.ts";
import { makeCertificate, startHttps } from "../support/certificate.ts";
import { fits } from "../support/fits.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { startReceiver, status, verify, type Receiver } from "../support/receiver.ts";

const secret = newWebhookSecret();
const body = '{"event_id":"evt_1","event_type":"batch.generated","batch_id":"bat_ü"}';
const mayConnect = createAddressRule(["127.0.0.0/8"]);
const webhook = (url: string) => ({ id: "evt_1", url, body, secrets: [secret] });
const send = createSender({ mayConnect });
const sendTo = (url: string) => send(webhook(url)) as Promise<Attempt>;

t.test("an event is sent as one POST, with a signature that a receiver's library accepts", async (t) => {
  const receiver = await startReceiver(t);
  await sendTo(`${receiver.url}/hook/?tenant=1#part`);
  t.equal(receiver.received.length, 1);
  const [got] = receiver.received;
  fits(t, got, { path: "/hook/?tenant=1", id: "evt_1", body });
  const { "webhook-id": _, "webhook-signature": signature, "webhook-timestamp": sentAt, ...rest } = got!.headers;
  t.strictSame(rest, {
    host: `127.0.0.1:${receiver.port}`,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "user-agent": "coupon-service",
    connection: "close",
  });
  t.match(signature, /^v1,[A-Za-z0-9+/]{43}=$/);
  t.ok(Math.abs(Number(sentAt) - Date.now() / 1_000) < 60, "seconds");
  t.strictSame(verify(secret, got!), JSON.parse(body));
  t.throws(() => verify(newWebhookSecret(), got!), "with another secret");
  t.throws(() => verify(secret, { ...got!, body: body.replace("1", "2") }), "with another body");
});

t.test("each address of a receiver has two seconds to accept the connection", async (t) => {
  const receiver = await startReceiver(t);
  const { mock: requests } = mock.method(http, "request");
  syncBuiltinESMExports();
  t.teardown(() => {
    requests.restore();
    syncBuiltinESMExports();
  });
  await sendTo(receiver.url);
  fits(
    t,
    requests.calls.map(({ arguments: [options] }) => options),
    [{ autoSelectFamilyAttemptTimeout: 2_000, agent: false }],
  );
});

t.test("the status of the response is the outcome", async (t) => {
  // The clock stands still, so a date is not nearer when it is read.
  const now = Date.UTC(2026, 10, 20, 21, 20, 3);
  const clock = mock.method(Date, "now", () => now);
  t.teardown(() => clock.mock.restore());
  const inside = await startReceiver(t);
  const waiting = { "retry-after": "60" };
  const rows: [string, Receiver["answer"], Partial<Attempt>][] = [
    ["200", status(200), { httpStatus: 200, error: null, retryAfterSeconds: null }],
    ["299 with Retry-After", status(299, waiting), { httpStatus: 299, retryAfterSeconds: null }],
    ["300 with Retry-After", status(300, waiting), { httpStatus: 300, error: null, retryAfterSeconds: 60 }],
    ["302 to an allowed address", status(302, { location: inside.url, refresh: "0" }), { httpStatus: 302 }],
    ["410", status(410), { httpStatus: 410, error: null }],
    [
      "429 with a date",
      status(429, { "retry-after": new Date(now + 90_000).toUTCString() }),
      { httpStatus: 429, retryAfterSeconds: 90 },
    ],
    ["503 without Retry-After", status(503), { httpStatus: 503, error: null, retryAfterSeconds: null }],
  ];
  const receiver = await startReceiver(t);
  for (const [name, answer, expected] of rows) {
    receiver.answer = answer;
    fits(t, await sendTo(receiver.url), expected, name);
  }
  t.equal(receiver.connections, rows.length, "one connection per webhook");
  t.equal(inside.connections, 0, "no redirect was followed");
});

t.test("https: only a receiver with a trusted certificate gets the event", async (t) => {
  const certificate = makeCertificate(t.testdir({}), "DNS:receiver.test");
  if (certificate === null) return void t.pass("not tried", { skip: "no openssl to make a certificate" });
  const receiver = await startReceiver(t);
  const { port } = new URL(await startHttps(t, certificate, receiver.url));
  const resolving = createSender({ mayConnect, resolve: async () => ["127.0.0.1"] });
  const sendSecurely = (host: string) => resolving(webhook(`https://${host}:${port}/`));
  const invalid = "the certificate is not valid";
  fits(t, await sendSecurely("receiver.test"), { httpStatus: null, error: /self-signed certificate/, reason: invalid });
  const trusted = getCACertificates();
  t.teardown(() => setDefaultCACertificates(trusted));
  setDefaultCACertificates([certificate.cert.toString()]);
  fits(t, await sendSecurely("other.test"), {
    httpStatus: null,
    error: /Hostname\/IP does not match/,
    reason: invalid,
  });
  t.equal(receiver.received.length, 0);
  fits(t, await sendSecurely("receiver.test"), { httpStatus: 204, error: null });
  fits(t, receiver.received, [{ id: "evt_1" }]);
});

t.test(
  "Retry-After is seconds or a date in one of HTTP's forms, capped at a day; anything else is ignored",
  async (t) => {
    const now = Date.UTC(2026, 10, 20, 21, 20, 3);
    const rows: [string | undefined, number | null][] = [
      ["1", 1],
      ["86400", 86_400],
      ["86401", 86_400],
      ["0", null],
      ["1.5", null],
      ["soon", null],
      [undefined, null],
      ["Fri, 20 Nov 2026 21:20:13 GMT", 10],
      ["Friday, 20-Nov-26 21:21:03 GMT", 60],
      ["Fri Nov 20 21:20:05 2026", 2],
      ["Fri, 20 Nov 2026 21:20:03 GMT", null],
      ["Fri, 20 Nov 2099 21:20:03 GMT", 86_400],
      ["2026-11-20T21:20:13Z", null],
    ];
    for (const [text, seconds] of rows) t.equal(readRetryAfter(text, now), seconds, String(text));
  },
);

// A receiver on plain TCP.
async function startBare(t: Test, act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    act(socket);
  });
  const port = await listenOnLoopback(server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${port}/hook`;
}

// Writes until the other side is gone. Resolves with the number of bytes written.
function pour(socket: Socket, chunk: Buffer, limit: number): Promise<number> {
  let written = 0;
  const more = () => {
    while (written < limit && !socket.destroyed) {
      written += chunk.length;
      if (!socket.write(chunk)) return;
    }
  };
  socket.on("drain", more);
  more();
  return new Promise((resolve) => socket.on("close", () => resolve(written)));
}

t.test(
  "the timeout covers the whole exchange: a receiver that never completes its response has not accepted the event",
  async (t) => {
    const trickleAfter = (head: string) => (socket: Socket) => {
      socket.write(head);
      const timer = setInterval(() => socket.write("x"), 100);
      socket.on("close", () => clearInterval(timer));
    };
    const receivers: Record<string, (socket: Socket) => void> = {
      "never answers": () => {},
      "answers one byte after the other": trickleAfter("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\nx: "),
      "sends its body one byte after the other": trickleAfter("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n"),
      "promises more than it sends": (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"),
    };
    const sendOnce = createSender({ mayConnect, timeoutMs: 1_000 });
    const sendBriefly = (url: string) => sendOnce(webhook(url));
    const deaf = createSender({ mayConnect, timeoutMs: 1_000, resolve: () => new Promise(() => {}) });
    const silent = await startBare(t, () => {});
    const outcomes: Record<string, Promise<Attempt | null>> = {
      "a name server that never answers": deaf(webhook("http://name.test/")),
      "TLS that never begins": sendBriefly(silent.replace("http:", "https:")),
    };
    for (const [name, act] of Object.entries(receivers)) outcomes[name] = sendBriefly(await startBare(t, act));
    for (const [name, outcome] of Object.entries(outcomes)) {
      const { durationMs, ...rest } = (await outcome)!;
      const why = "no complete response within 1 s";
      fits(t, rest, { httpStatus: null, error: why, reason: why }, name);
      t.ok(durationMs >= 990 && durationMs < 60_000, `${name}: ${durationMs} ms`);
    }
  },
);

t.test("at most 16 KiB of a 1 GB body are read, and nothing waits for the rest", async (t) => {
  const gigabyte = 1024 ** 3;
  const poured = Promise.withResolvers<number>();
  const url = await startBare(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${gigabyte}\r\n\r\n`);
    void pour(socket, Buffer.alloc(16_384), gigabyte).then(poured.resolve);
  });
  fits(t, await sendTo(url), { httpStatus: 200, error: null });
  const bytes = await poured.promise;
  t.ok(bytes < 32 * 1024 ** 2, `closed after ${bytes} bytes, including the buffers of both sides`);
  const endless = await startBare(
    t,
    (socket) => void pour(socket, Buffer.from("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"), gigabyte),
  );
  fits(t, await sendTo(endless), { httpStatus: null, error: "too many interim responses" });
  const wide = await startBare(t, (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}\r\n\r\n`));
  fits(t, await sendTo(wide), { httpStatus: null, error: /Header overflow/ });
});

t.test("a connection that breaks anywhere in the exchange results in no status, and in a reason", async (t) => {
  const closed = "the connection was closed";
  const notHttp = "the answer is not valid HTTP";
  const receivers: [string, reason: string | RegExp, act: (socket: Socket) => void][] = [
    ["at once", closed, (socket) => void socket.resetAndDestroy()],
    ["after the request", closed, (socket) => void socket.once("data", () => socket.resetAndDestroy())],
    ["in the head", closed, (socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-"))],
    [
      "in the body",
      closed,
      (socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort")),
    ],
    ["with another protocol", notHttp, (socket) => void socket.end("220 mail.test ESMTP\u0000\r\n")],
    [
      "by switching",
      "the receiver switched protocols",
      (socket) => void socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ],
  ];
  for (const [name, reason, act] of receivers) {
    const outcome = await sendTo(await startBare(t, act));
    fits(t, outcome, { httpStatus: null, error: /^[ -~]+$/, reason }, `${name}: ${outcome.error}`);
    t.notMatch(outcome.error, "no complete response", name);
  }
  const refused = { httpStatus: null, error: /ECONNREFUSED 127/, reason: "the connection was refused" };
  fits(t, await sendTo("http://127.0.0.1:9/"), refused, "nobody listens");
  const plain = (await startReceiver(t)).url.replace("http:", "https:");
  fits(t, await sendTo(plain), { httpStatus: null, reason: "TLS failed" });
  fits(t, await sendTo("http:///"), { httpStatus: null, reason: "the request failed" }, "no URL");
});

t.test("a receiver whose name leads nowhere learns no address from its reason", async (t) => {
  const fail = (code: string, syscall: string) =>
    Object.assign(new Error(`${syscall} ${code} 10.1.2.3`), { code, syscall });
  const noAddress = "the name of the receiver has no address";
  const rows: [Error | string[], string][] = [
    [[], noAddress],
    [fail("ENOTFOUND", "queryA"), noAddress],
    [fail("ENODATA", "queryAaaa"), noAddress],
    [fail("ESERVFAIL", "queryA"), "the name lookup of the receiver failed"],
    [fail("ECONNREFUSED", "queryA"), "the name lookup of the receiver failed"],
    [fail("EHOSTUNREACH", "connect"), "the receiver is unreachable"],
    [fail("ETIMEDOUT", "connect"), "the connection timed out"],
    [["127.0.0.1", "10.1.2.3"], "refused: the address of the receiver is not public"],
  ];
  for (const [found, reason] of rows) {
    const resolve = async () => {
      if (found instanceof Error) throw found;
      return found;
    };
    fits(t, await createSender({ mayConnect, resolve })(webhook("http://name.test/")), { httpStatus: null, reason });
  }
});

t.test("an exchange cut off by a stop has an unknown outcome", async (t) => {
  const cut = new AbortController();
  const answering = await startBare(t, (socket) => void socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
  fits(t, await send(webhook(answering), cut.signal), { httpStatus: 204 });
  t.strictSame(getEventListeners(cut.signal, "abort"), [], "an exchange that is over no longer listens");
  const url = await startBare(t, (socket) => void socket.once("data", () => cut.abort()));
  t.equal(await send(webhook(url), cut.signal), null);
});
