// How the server stops: each connection ends with an answer that says so, and none is reset.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import type { Gate, Outcome } from "../../src/gate/gate.ts";
import { openConnection } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";
import { done, startStub } from "../support/stub.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const health = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
const answered = /^HTTP\/1.1 200 [^]*^Connection: close\r\n[^]*\{"ok":true\}$/m;

async function untilRefused(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const isRefused = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.destroy();
        resolve(false);
      });
      socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
    });
  await waitUntil("a new connection to be refused", isRefused);
}

// A connection that has had an answer.
async function openUsed(t: Test, url: string) {
  const connection = await openConnection(t, url);
  connection.socket.write(health);
  await waitUntil("an answer", () => connection.received().includes("{"));
  t.match(connection.received(), /^Connection: keep-alive\r\n/m);
  return connection;
}

// A call that ends when the test says so.
function holdCall<Answer>() {
  const [called, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<Answer>()];
  const call = () => {
    called.resolve();
    return answer.promise;
  };
  return { isCalled: called.promise, answer: answer.resolve, call };
}

t.test("A connection in use ends with its next answer, which says so", async (t) => {
  const { url, stop, log } = await startStub(t);
  const clock = stopClock(t, { hasTimers: true });
  const [first, second] = [await openUsed(t, url), await openUsed(t, url)];
  const stopping = stop();
  await untilRefused(url);

  clock.pass(999);
  await sleep(300);
  t.strictSame(first.events, [], "an idle connection stays open for a second");
  first.socket.write(health);
  await waitUntil("the end", () => first.events.includes("end"));
  const last = first.received().slice(first.received().lastIndexOf("HTTP/1.1"));
  t.match(last, answered);
  t.strictSame([first.events, second.events], [["end"], []]);
  clock.pass(1);

  await waitUntil("the end", () => second.events.includes("end"));
  t.strictSame(second.events, ["end"], "an idle connection is ended, not reset");
  second.socket.write(health);
  for (const { socket } of [first, second]) socket.end();
  await waitFor("the stop", stopping);
  for (const { events } of [first, second]) {
    await waitUntil("the close", () => events.includes("close"));
    t.strictSame(events, ["end", "close"]);
  }
  t.equal(log.length, 3, "a request that comes after the end is not handled");
});

t.test("A request that is still arriving when the server stops is answered, however slowly it arrives", async (t) => {
  const { url, stop } = await startStub(t);
  const clock = stopClock(t, { hasTimers: true });
  const { socket, received, events } = await openConnection(t, url);
  const stopping = stop();
  for (const piece of health.match(/[^]{4}|[^]+$/g)!) {
    socket.write(piece);
    // The server looks every 50 ms.
    await sleep(180);
    clock.pass(180);
  }
  await waitUntil("the end", () => events.includes("end"));
  t.match(received(), answered);
  socket.end();
  await waitFor("the stop", stopping);
});

t.test(
  "A client that has ended its side when the server stops gets its answer, and delays the stop no longer",
  async (t) => {
    const { isCalled, answer, call } = holdCall<Awaited<ReturnType<Gate["readVersion"]>>>();
    const { url, stop } = await startStub(t, { readVersion: call });
    const { socket, received, events } = await openConnection(t, url);
    // Answers and ends of connections come without the clock, cuts do not.
    stopClock(t, { hasTimers: true });
    socket.end("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n");
    await waitFor("the call", isCalled);
    const stopping = stop();
    await untilRefused(url);
    answer({ migration: "1", code: "1", cell: 1, server_cell: 1 });
    await waitUntil("the close", () => events.includes("close"));
    t.match(received(), answered);
    t.strictSame(events, ["end", "close"]);
    await waitFor("the stop", stopping);
  },
);

t.test("A request behind the last answer of a connection is not handled", async (t) => {
  const { url, stop, log } = await startStub(t);
  const { socket, received, events } = await openUsed(t, url);
  // The connection does not become idle.
  stopClock(t);
  const stopping = stop();
  await untilRefused(url);
  socket.write(health + health + health);
  await waitUntil("the end", () => events.includes("end"));
  t.equal(received().match(/HTTP\/1.1 200/g)!.length, 2);
  t.equal(log.length, 2);
  t.strictSame(events, ["end"], "and the connection is not reset because of it");
  socket.end();
  await stopping;
});

t.test("A client that still sends a body can read the answer that refuses it, even after 0.9 s", async (t) => {
  const { url, stop } = await startStub(t);
  const { socket, received, events } = await openUsed(t, url);
  socket.pause();
  // On a busy machine sending takes long.
  const clock = stopClock(t, { hasTimers: true });
  const stopping = stop();
  await untilRefused(url);
  const head = "POST /v1/coupons/lock HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  socket.write(`${head}content-length: 20000000\r\n\r\n`);
  for (let sent = 0; sent < 20; sent += 1) {
    socket.write(Buffer.alloc(1_000_000, 32));
    if (sent === 10) clock.pass(900);
    await sleep(20);
  }
  socket.resume();
  await waitUntil("the end", () => events.length > 0);
  t.match(received(), /HTTP\/1.1 413 [^]*PAYLOAD_TOO_LARGE/);
  t.strictSame(events, ["end"]);
  socket.end();
  await stopping;
});

t.test("Clients that never end their side are cut, and the server stops all the same", async (t) => {
  const { url, stop } = await startStub(t);
  const idle = await openConnection(t, url);
  const answered = await openConnection(t, url);
  const startedAt = performance.now();
  const stopping = stop();
  answered.socket.write(health);
  await waitFor("the stop", stopping, { withinMs: 10_000 });
  t.ok(performance.now() - startedAt > 1_000, "they have a second to end their side");
  t.match(answered.received(), /"ok":true/);
  await waitUntil("the end", () => idle.events.includes("end"));
});

t.test("When the server stops, an idle connection is ended without waiting for answers on other ones", async (t) => {
  const { isCalled, answer, call } = holdCall<Outcome>();
  const { url, lock, stop } = await startStub(t, { perform: call });
  const clock = stopClock(t, { hasTimers: true });
  const idle = await openUsed(t, url);
  const hanging = lock();
  await waitFor("the call", isCalled);
  const stopping = stop();
  await untilRefused(url);
  clock.pass(1_000);
  await waitUntil("the end", () => idle.events.includes("end"));
  idle.socket.end();
  answer(done);
  fits(
    t,
    await hanging,
    { status: 200, json: { ok: true }, headers: { connection: "close" } },
    "the other one is sent whole, and is the last of its connection",
  );
  await waitFor("the stop", stopping);
});

t.test("Connections that wait to be accepted when the server stops are served, not reset", async (t) => {
  const { url, stop } = await startStub(t);
  const count = 100;
  const connected = path.join(useTemporaryFolder(t, "coupon-drain-"), "connected");
  const { hostname, port } = new URL(url);
  const clients = spawn(process.execPath, [
    "--eval",
    `const { connect } = require("node:net");
    const ends = [];
    let open = 0;
    for (let number = 1; number <= ${count}; number += 1) {
      const socket = connect(${port}, "${hostname}");
      let received = "";
      socket.on("connect", () => {
        socket.write(${JSON.stringify(health)});
        if ((open += 1) === ${count}) require("node:fs").writeFileSync("${connected}", "");
      });
      socket.on("data", (chunk) => (received += chunk));
      socket.on("error", ({ code }) => ends.push(code));
      socket.on("end", () => ends.push(received.startsWith("HTTP/1.1 200") ? "answered" : received));
    }
    process.on("exit", () => console.log(JSON.stringify(ends)));`,
  ]);
  t.teardown(() => clients.kill("SIGKILL"));
  const output = text(clients.stdout);
  // Blocks this process, so the server accepts none of them.
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; !existsSync(connected) && tries < 3_000; tries += 1) Atomics.wait(cell, 0, 0, 10);
  const stopping = stop();
  t.strictSame(JSON.parse(await waitFor("the clients", output)), Array(count).fill("answered"));
  await waitFor("the stop", stopping);
});
