// Receivers that break HTTP, stall or send too much: each one ends as an outcome, in time and with bounded memory.
import { getEventListeners } from "node:events";
import { createServer, type Socket } from "node:net";
import { mock } from "node:test";
import t, { type Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createSender, type Outcome } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { listenOnLoopback } from "../support/listen.ts";

const mayConnect = createAddressRule(["127.0.0.0/8"]);
const secret = newWebhookSecret();
const body = '{"event_id":"evt_1","event_type":"batch.generated","batch_id":"bat_ü"}';
const send = createSender({ mayConnect });
const sendTo = (url: string) => send({ id: "evt_1", url, body, secrets: [secret] }) as Promise<Outcome>;

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
      fits(t, rest, { httpStatus: null, error: "no complete response within 1 s" }, name);
      t.ok(durationMs >= 990 && durationMs < 60_000, `${name}: ${durationMs} ms`);
    }
  },
);

t.test("at most 16 KiB of a 1 GB body are read, and nothing waits for the rest", async (t) => {
  const gigabyte = 1024 ** 3;
  const heads = { "a length": `content-length: ${gigabyte}\r\n`, "no length": "" };
  for (const [name, head] of Object.entries(heads)) {
    const poured = Promise.withResolvers<number>();
    const url = await startBare(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n`);
      void pour(socket, Buffer.alloc(16_384), gigabyte).then(poured.resolve);
    });
    fits(t, await sendTo(url), { httpStatus: 200, error: null }, name);
    const bytes = await poured.promise;
    t.ok(bytes < 32 * 1024 ** 2, `${name}: closed after ${bytes} bytes, including the buffers of both sides`);
  }
  const endless = await startBare(
    t,
    (socket) => void pour(socket, Buffer.from("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"), gigabyte),
  );
  fits(t, await sendTo(endless), { httpStatus: null, error: "too many interim responses" });
  const wide = await startBare(t, (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}\r\n\r\n`));
  fits(t, await sendTo(wide), { httpStatus: null, error: /Header overflow/ });
});

t.test("the 16,385th byte of an answer ends the exchange", async (t) => {
  const answerWith = async (bytes: number, timeoutMs: number) => {
    const patient = createSender({ mayConnect, timeoutMs });
    const url = await startBare(t, (socket) => void socket.write(`HTTP/1.1 200 OK\r\n\r\n${"y".repeat(bytes)}`));
    return (await patient({ id: "evt_1", url, body, secrets: [secret] }))?.httpStatus;
  };
  // The receiver never ends its answer.
  t.equal(await answerWith(16_384, 1_000), null);
  t.equal(await answerWith(16_385, 20_000), 200);
});

t.test("the whole exchange may take 15 s", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.teardown(() => mock.timers.reset());
  const asked = Promise.withResolvers<void>();
  let outcome: Outcome | null = null;
  const url = await startBare(t, (socket) => socket.on("data", () => asked.resolve()));
  void sendTo(url).then((it) => (outcome = it));
  await asked.promise;
  for (const [ms, expected] of [
    [14_999, null],
    [1, { httpStatus: null, error: "no complete response within 15 s" }],
  ] as const) {
    mock.timers.tick(ms);
    await new Promise(setImmediate);
    fits(t, outcome, expected, `${ms} ms later`);
  }
});

t.test("a connection that breaks anywhere in the exchange results in no status", async (t) => {
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
    fits(t, outcome, { httpStatus: null, error: /^[ -~]+$/ }, `${name}: ${outcome.error}`);
    t.notMatch(outcome.error, "no complete response", name);
  }
  fits(t, await sendTo("http://127.0.0.1:9/"), { httpStatus: null, error: /ECONNREFUSED/ }, "nobody listens");
  fits(t, await sendTo("http:///"), { httpStatus: null }, "no URL");
});

t.test("an exchange cut off by a stop has an unknown outcome", async (t) => {
  const cut = new AbortController();
  const answering = await startBare(t, (socket) => void socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
  fits(t, await send({ id: "evt_1", url: answering, body, secrets: [secret] }, cut.signal), { httpStatus: 204 });
  t.strictSame(getEventListeners(cut.signal, "abort"), [], "an exchange that is over no longer listens");
  const url = await startBare(t, (socket) => void socket.once("data", () => cut.abort()));
  t.equal(await send({ id: "evt_1", url, body, secrets: [secret] }, cut.signal), null);
});
