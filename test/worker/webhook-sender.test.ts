// One webhook, and every way in which a receiver can answer it.
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer as createSecureServer } from "node:https";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender, readRetryAfter, type Outcome } from "../../src/worker/webhook-sender.ts";
import { newWebhookSecret, signWebhook } from "../../src/crypto/webhook-signature.ts";
import { startReceiver, status, take, verify, type Receiver } from "../support/receiver.ts";

const mayConnect = createAddressRule(["127.0.0.0/8"]);
const secret = newWebhookSecret();
const body = '{"event_id":"evt_1","event_type":"batch.generated","batch_id":"bat_ü"}';
const send = createSender({ mayConnect });
const sendTo = (url: string, secrets = [secret]) => send({ id: "evt_1", url, body, secrets }) as Promise<Outcome>;

// A receiver that knows nothing of HTTP.
async function startBare(t: Test, act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    act(socket);
  });
  const url = await listen(server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return url;
}

async function listen(server: Server, scheme = "http"): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

// Resolves when the other side is gone, with what was written to it until then.
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

t.test("what is sent: one POST of the event, signed so that a receiver's library accepts it", async (t) => {
  const receiver = await startReceiver(t);
  await sendTo(`${receiver.url}/hook/?tenant=1#part`);
  t.equal(receiver.received.length, 1);
  const [got] = receiver.received;
  t.match(got, { path: "/hook/?tenant=1", id: "evt_1", body });
  t.match(got!.headers, {
    host: `127.0.0.1:${receiver.port}`,
    "content-type": "application/json",
    "user-agent": "coupon-service",
    connection: "close",
  });
  t.strictSame(Object.keys(got!.headers).sort(), [
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
  ]);
  t.strictSame(verify(secret, got!), JSON.parse(body));
  t.throws(() => verify(newWebhookSecret(), got!), "with another secret");
  t.throws(() => verify(secret, { ...got!, body: body.replace("1", "2") }), "with another body");
});

t.test("with two secrets a receiver may have either", async (t) => {
  const receiver = await startReceiver(t);
  const before = newWebhookSecret();
  await sendTo(receiver.url, [secret, before]);
  const [got] = receiver.received;
  verify(secret, got!);
  verify(before, got!);
  t.match(got!.headers["webhook-signature"], /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  t.throws(() => verify(newWebhookSecret(), got!));
});

t.test("the signature is that of the specification's example", async (t) => {
  const signature = signWebhook(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
    '{"test": 2432232314}',
  );
  t.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

t.test("an answer is taken as its status", async (t) => {
  const inside = await startReceiver(t);
  const redirect = (code: number) => status(code, { location: `http://10.0.0.1:${inside.port}/`, refresh: "0" });
  const rows: [string, Receiver["answer"], Partial<Outcome>][] = [
    ["200", status(200), { httpStatus: 200, error: null, retryAfterSeconds: null }],
    ["204", take, { httpStatus: 204, error: null }],
    ["200 with Retry-After", status(200, { "retry-after": "60" }), { httpStatus: 200, retryAfterSeconds: null }],
    ["301 to a private address", redirect(301), { httpStatus: 301, error: null }],
    [
      "302 to where it may go",
      (response) => void response.writeHead(302, { location: inside.url }).end(),
      { httpStatus: 302, error: null },
    ],
    ["307", redirect(307), { httpStatus: 307 }],
    ["404", status(404), { httpStatus: 404, error: null, retryAfterSeconds: null }],
    ["410", status(410), { httpStatus: 410, error: null }],
    ["429 with seconds", status(429, { "retry-after": "120" }), { httpStatus: 429, retryAfterSeconds: 120 }],
    [
      "429 with a date",
      (response) => void response.writeHead(429, { "retry-after": new Date(Date.now() + 90_500).toUTCString() }).end(),
      { httpStatus: 429 },
    ],
    ["429 with years", status(429, { "retry-after": "99999999" }), { httpStatus: 429, retryAfterSeconds: 86_400 }],
    ["503 without", status(503), { httpStatus: 503, retryAfterSeconds: null }],
    ["500", status(500), { httpStatus: 500, error: null }],
  ];
  const receiver = await startReceiver(t);
  for (const [name, answer, expected] of rows) {
    receiver.answer = answer;
    const outcome = await sendTo(receiver.url);
    t.match(outcome, expected, name);
    if (name.endsWith("a date")) t.ok(outcome.retryAfterSeconds! >= 89 && outcome.retryAfterSeconds! <= 91, name);
  }
  t.equal(receiver.connections, rows.length, "one connection each");
  t.equal(inside.connections, 0, "no redirect was followed");
});

t.test("an exchange has its time as a whole: a receiver that never ends it has not taken the event", async (t) => {
  const everySecond = (head: string) => (socket: Socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write("x"), 100);
    socket.on("close", () => clearInterval(timer));
  };
  const receivers: Record<string, (socket: Socket) => void> = {
    "never answers": () => {},
    "answers one byte after the other": everySecond("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\nx: "),
    "sends its body one byte after the other": everySecond("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n"),
    "promises more than it sends": (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"),
  };
  const sendOnce = createSender({ mayConnect, timeoutMs: 1_000 });
  const sendBriefly = (url: string) => sendOnce({ id: "evt_1", url, body, secrets: [secret] });
  const deaf = createSender({ mayConnect, timeoutMs: 1_000, resolve: () => new Promise(() => {}) });
  const silent = await startBare(t, () => {});
  const outcomes: Record<string, Promise<Outcome | null>> = {
    "a name server that never answers": deaf({ id: "evt_1", url: "http://name.test/", body, secrets: [secret] }),
    "TLS that never begins": sendBriefly(silent.replace("http:", "https:")),
  };
  for (const [name, act] of Object.entries(receivers)) outcomes[name] = sendBriefly(await startBare(t, act));
  for (const [name, outcome] of Object.entries(outcomes)) {
    const { durationMs, ...rest } = (await outcome)!;
    t.match(rest, { httpStatus: null, error: "no complete response within 1 s" }, name);
    t.ok(durationMs >= 990 && durationMs < 5_000, `${name}: ${durationMs} ms`);
  }
});

t.test("of a body of 1 GB at most 16 KiB are looked at, and the rest is not waited for", async (t) => {
  const gigabyte = 1024 ** 3;
  const heads = { "a length": `content-length: ${gigabyte}\r\n`, "no length": "" };
  for (const [name, head] of Object.entries(heads)) {
    const poured = Promise.withResolvers<number>();
    const url = await startBare(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n`);
      void pour(socket, Buffer.alloc(16_384), gigabyte).then(poured.resolve);
    });
    t.match(await sendTo(url), { httpStatus: 200, error: null }, name);
    const bytes = await poured.promise;
    t.ok(bytes < 32 * 1024 ** 2, `${name}: gone after ${bytes} bytes, buffers of both sides included`);
  }
  const endless = await startBare(
    t,
    (socket) => void pour(socket, Buffer.from("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"), gigabyte),
  );
  t.match(await sendTo(endless), { httpStatus: null, error: "too many interim responses" });
  const wide = await startBare(t, (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}\r\n\r\n`));
  t.match(await sendTo(wide), { httpStatus: null, error: /Header overflow/ });
});

t.test("a connection that breaks is no answer, wherever it breaks", async (t) => {
  const receivers: Record<string, (socket: Socket) => void> = {
    "at once": (socket) => void socket.resetAndDestroy(),
    "after the request": (socket) => void socket.once("data", () => socket.resetAndDestroy()),
    "in the head": (socket) => void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-")),
    "in the body": (socket) =>
      void socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort")),
    "with another protocol": (socket) => void socket.end("220 mail.test ESMTP\u0000\r\n"),
    "by switching": (socket) =>
      void socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
  };
  for (const [name, act] of Object.entries(receivers)) {
    const outcome = await sendTo(await startBare(t, act));
    t.match(outcome, { httpStatus: null, error: /^[ -~]+$/ }, `${name}: ${outcome.error}`);
    t.notMatch(outcome.error, "no complete response", name);
  }
  t.match(await sendTo("http://127.0.0.1:9/"), { httpStatus: null, error: /ECONNREFUSED/ }, "nobody listens");
  t.match(await sendTo("http:///"), { httpStatus: null }, "no URL");
});

t.test("an exchange that is cut off because we stop came to nothing that anybody knows", async (t) => {
  const cut = new AbortController();
  const url = await startBare(t, (socket) => void socket.once("data", () => cut.abort()));
  t.equal(await send({ id: "evt_1", url, body, secrets: [secret] }, cut.signal), null);
});

t.test("https: a certificate that nobody vouches for gets nothing, a trusted one gets the event", async (t) => {
  const folder = t.testdir({});
  const [key, certificate] = [`${folder}/key.pem`, `${folder}/certificate.pem`];
  const made = spawnSync("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    key,
    "-out",
    certificate,
    "-days",
    "2",
    "-subj",
    "/CN=receiver.test",
    "-addext",
    "subjectAltName=DNS:receiver.test",
  ]);
  if (made.status !== 0) return void t.pass("no openssl on this machine to make a certificate with");
  const ids: unknown[] = [];
  const server = createSecureServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (request, response) => {
      ids.push(request.headers["webhook-id"]);
      response.writeHead(200).end();
    },
  );
  const { port } = new URL(await listen(server, "https"));
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  // What a process trusts is settled when it starts.
  const sendFrom = async (env: Record<string, string>, host: string) => {
    const script = `
      import { createAddressRule } from "./src/worker/address-rule.ts";
      import { createSender } from "./src/worker/webhook-sender.ts";
      const send = createSender({ mayConnect: createAddressRule(["127.0.0.0/8"]), resolve: async () => ["127.0.0.1"] });
      console.log(JSON.stringify(await send({ id: "evt_1", url: "https://${host}:${port}/", body: "{}", secrets: ["${secret}"] })));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module-typescript", "-e", script], {
      env,
    });
    return JSON.parse(stdout) as Outcome;
  };
  t.match(await sendFrom({}, "receiver.test"), { httpStatus: null, error: /self-signed certificate/ });
  t.match(await sendFrom({ NODE_EXTRA_CA_CERTS: certificate }, "other.test"), {
    httpStatus: null,
    error: /Hostname\/IP does not match/,
  });
  t.equal(ids.length, 0);
  t.match(await sendFrom({ NODE_EXTRA_CA_CERTS: certificate }, "receiver.test"), { httpStatus: 200, error: null });
  t.strictSame(ids, ["evt_1"]);
});

t.test("Retry-After is seconds or a date, of any of HTTP's forms, up to a day; anything else is no wish", async (t) => {
  const now = Date.UTC(2026, 10, 20, 21, 20, 3);
  const rows: [string | undefined, number | null][] = [
    ["1", 1],
    ["86400", 86_400],
    ["86401", 86_400],
    ["9".repeat(400), 86_400],
    ["0", null],
    ["-5", null],
    ["1.5", null],
    ["1e3", null],
    ["soon", null],
    ["", null],
    [undefined, null],
    ["Fri, 20 Nov 2026 21:20:13 GMT", 10],
    ["Friday, 20-Nov-26 21:21:03 GMT", 60],
    ["Fri Nov 20 21:20:05 2026", 2],
    ["Fri, 20 Nov 2026 21:20:03 GMT", null],
    ["Fri, 20 Nov 2020 21:20:03 GMT", null],
    ["Fri, 20 Nov 2099 21:20:03 GMT", 86_400],
    ["Fri, 99 Nov 2026 21:20:03 GMT", null],
    ["2026-11-20T21:20:13Z", null],
    ["tomorrow 1", null],
  ];
  for (const [text, seconds] of rows) t.equal(readRetryAfter(text, now), seconds, String(text).slice(0, 40));
});
