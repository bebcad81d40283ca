// Clients that send more than they wait for: one request of a connection is answered at a time, strangers take turns,
// and callers that authenticated go first. All is counted in requests and bytes, so a slow machine changes nothing.
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { boundConnections } from "../../src/server/connections.ts";
import { noteAuthenticated } from "../../src/server/turns.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const chunked = (path: string, pieces: string[]) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n` +
  [...pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`), "0\r\n\r\n"].join("");

// Answers with the path and the body. `begun` has the paths in the order in which the requests began.
async function start(t: Test, most = 1_000, handle: RequestListener = answer) {
  const begun: string[] = [];
  let refused = 0;
  const server = Object.assign(createServer(), { httpAllowHalfOpen: true });
  const connections = boundConnections(server, { most, onRefused: () => (refused += 1) });
  server.on("request", (request, response) => {
    if (!connections.admit(request, response)) return;
    begun.push(request.url!);
    if (request.url!.startsWith("/signed")) noteAuthenticated(request.socket);
    handle(request, response);
  });
  const port = await listenOnLoopback(server);
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  async function open(): Promise<Socket> {
    const socket = connect({ port, host: "127.0.0.1" }).on("error", () => {});
    sockets.push(socket);
    await waitFor("a connection", once(socket, "connect"));
    return socket;
  }
  return { begun, open, connections, refused: () => refused };
}

function answer(request: IncomingMessage, response: Parameters<RequestListener>[1]): void {
  void text(request).then((body) => response.end(`[${request.url}${body}]`));
}

// Sends and ends. Returns what the answers say, in their order.
async function talk(socket: Socket, bytes: string): Promise<string[]> {
  socket.end(bytes);
  return (await waitFor("the answers", text(socket))).match(/\[[^\]]*\]/g) ?? [];
}
const ask = async (socket: Socket, path: string) => {
  socket.write(get(path));
  await waitFor(path, once(socket, "data"));
};
const numbered = (count: number, make: (number: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at));

t.test(
  "Pipelined requests are answered one by one, in their order, whatever their bodies and wherever they are cut",
  async (t) => {
    let [open, most] = [0, 0];
    const { open: connectTo } = await start(t, 10, (request, response) => {
      open += 1;
      most = Math.max(most, open);
      response.once("close", () => (open -= 1));
      answer(request, response);
    });
    const requests = numbered(
      1_500,
      (number) =>
        [get(`/${number}`), post(`/${number}`, "a\r\n\r\nb"), chunked(`/${number}`, ["a", "\r\n\r\nGET /", "b"])][
          number % 3
        ]!,
    );
    const expected = numbered(1_500, (number) => `[/${number}${["", "a\r\n\r\nb", "a\r\n\r\nGET /b"][number % 3]}]`);
    t.strictSame(await talk(await connectTo(), requests.join("")), expected);
    t.ok(most <= 2, `${most} at a time`);
    const dripping = await connectTo();
    const answers = text(dripping);
    for (const byte of requests.slice(0, 6).join(""))
      await new Promise<void>((sent) => dripping.write(byte, () => sent()));
    dripping.end();
    t.strictSame((await answers).match(/\[[^\]]*\]/g), expected.slice(0, 6), "byte by byte");
  },
);

t.test("A caller that authenticated goes first; so does a stranger that sends one request at a time", async (t) => {
  const { begun, open } = await start(t);
  const known = await open();
  await ask(known, "/signed");
  const single = await open();
  await ask(single, "/single");
  const floods = await Promise.all(numbered(200, () => "").map(open));
  for (const socket of floods) socket.resume().write(get("/flood").repeat(1_000));
  await waitUntil("the flood", () => begun.filter((path) => path === "/flood").length > 200);
  for (const [socket, path] of [
    [known, "/signed"],
    [single, "/single"],
    [await open(), "/new"],
  ] as const) {
    begun.length = 0;
    await ask(socket, path);
    const before = begun.indexOf(path);
    t.ok(before >= 0 && before < 100, `${before} of 200,000 requests of the flood began before ${path}`);
  }
  await waitUntil("the rest of the flood", () => begun.filter((path) => path === "/flood").length > 5_000);
});

t.test("The strangers of all ports take turns together", async (t) => {
  const ports = [await start(t), await start(t)];
  const count = () => ports[0]!.begun.length + ports[1]!.begun.length;
  let [before, most, isOver] = [0, 0, false];
  setImmediate(function endTurn() {
    [before, most] = [count(), Math.max(most, count() - before)];
    if (!isOver) setImmediate(endTurn);
  });
  for (const { open } of ports)
    for (const socket of await Promise.all(numbered(50, () => "").map(open)))
      socket.resume().write(get("/").repeat(500));
  await waitUntil("the flood", () => ports.every(({ begun }) => begun.length > 2_000));
  isOver = true;
  t.ok(most <= 16, `${most} in one turn of the event loop`);
});

t.test("A known caller that pipelines is answered in order, and is cut if it never ends", async (t) => {
  const { begun, open } = await start(t, 10, (request, response) => {
    if (request.url !== "/wait") answer(request, response);
  });
  const known = await open();
  await ask(known, "/signed");
  await ask(known, "/signed");
  const paths = numbered(200, (number) => `/signed/${number}`);
  t.strictSame(
    await talk(known, paths.map(get).join("")),
    paths.map((path) => `[${path}]`),
  );
  const endless = await open();
  await ask(endless, "/signed");
  begun.length = 0;
  endless.resume().write(get("/wait").repeat(2_000));
  await waitFor("the cut", once(endless, "close"));
  t.ok(begun.length <= 301, `${begun.length} of 2,000 began`);
});

t.test(
  "A connection too many takes the place of the oldest stranger, never of a caller or of a first request",
  async (t) => {
    const { begun, open, connections, refused } = await start(t, 3, (request, response) => {
      if (request.url !== "/wait") answer(request, response);
    });
    const known = await open();
    await ask(known, "/signed");
    const waiting = await open();
    waiting.write(get("/wait"));
    await waitUntil("its request", () => begun.at(-1) === "/wait");
    const idle = (await open()).resume();
    const newer = (await open()).resume();
    await waitFor("the end of the idle one", once(idle, "close"));
    await ask(newer, "/");
    const newest = await open();
    await waitFor("the end of the answered one", once(newer, "close"));
    newest.write(get("/wait"));
    await waitUntil("its request", () => begun.at(-1) === "/wait");
    const last = (await open()).resume();
    await waitFor("the end of the last one", once(last, "close"));
    await ask(known, "/");
    t.strictSame([connections.count(), refused(), waiting.closed, newest.closed], [3, 3, false, false]);
  },
);

t.test("Answers that nobody reads are bounded: those that wait longest are cut", async (t) => {
  const body = Buffer.alloc(8 * 1024 * 1024);
  const { open, connections } = await start(t, 1_000, (_, response) => void response.end(body));
  const sockets: Socket[] = [];
  for (let number = 0; number < 16; number += 1) {
    const socket = (await open()).pause();
    socket.write(get("/"));
    sockets.push(socket);
  }
  await waitUntil("the cut", () => connections.count() <= 12);
  for (const socket of sockets) socket.resume();
  await waitUntil("the cut", () => sockets.filter(({ closed }) => closed).length > 3);
  t.equal(sockets.at(-1)!.closed, false, "the newest stays");
  const reader = await open();
  const received = new Promise<number>((resolve) => {
    let bytes = 0;
    reader.on("data", (chunk) => (bytes += chunk.length)).once("end", () => resolve(bytes));
  });
  reader.end(get("/"));
  t.ok((await waitFor("the answer", received)) > body.length, "who reads gets all of it");
});
