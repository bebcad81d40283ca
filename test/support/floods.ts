// Any number of badly behaved clients: they disconnect early, send nothing, or send slowly. They ignore how the service
// treats them.
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { sign } from "../../clients/typescript/src/signature.ts";
import { waitFor } from "./wait-until.ts";

export type Target = { url: string; accessKey: string; secret: string };
// Open sockets. letGo closes them.
export type Held = { open(): number; letGo(): void };

const atOnce = 50;
// Fewer at a time: a client that asks for an answer costs as much as any other, and this flood is about disconnecting.
const askingAtOnce = 4;

function open({ url }: Pick<Target, "url">): Promise<Socket | null> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(socket));
    socket.once("close", () => resolve(null));
  });
}

// Closes every second socket and resets the others.
function leave(socket: Socket, number: number): void {
  if (number % 2 === 0) socket.destroy();
  else socket.resetAndDestroy();
}

async function each(count: number, one: (number: number) => Promise<void>, most = atOnce): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(most, count) }, async () => {
      while (next < count) await one(next++);
    }),
  );
}

export function cutBodies(target: Target, count: number): Promise<void> {
  return each(count, async (number) => {
    const socket = await open(target);
    if (socket === null) return;
    const coding = number % 3 === 0 ? "transfer-encoding: chunked\r\n\r\n400\r\n" : "content-length: 1024\r\n\r\n";
    socket.write(
      `POST /v1/coupons/redeem HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${coding}{"request_id":"`,
    );
    await sleep(number % 10);
    leave(socket, number);
  });
}

// Sends signed requests, so that the service does all the work. The clients leave at once or with the first bytes of
// the answer.
export function cutAnswers(target: Target, count: number): Promise<void> {
  const path = "/v1/events?limit=200";
  return each(
    count,
    async (number) => {
      const socket = await open(target);
      if (socket === null) return;
      const [timestamp, nonce] = [String(Math.floor(Date.now() / 1_000)), randomBytes(12).toString("hex")];
      const signature = sign(target.secret, { method: "GET", target: path, timestamp, nonce, body: Buffer.alloc(0) });
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: x\r\nx-svc-access-key: ${target.accessKey}\r\n` +
          `x-svc-timestamp: ${timestamp}\r\nx-svc-nonce: ${nonce}\r\nx-svc-signature: ${signature}\r\n` +
          "connection: close\r\n\r\n",
      );
      if (number % 3 === 0) await sleep(number % 5);
      else
        await waitFor("the first bytes", new Promise((resolve) => socket.once("data", resolve).once("close", resolve)));
      leave(socket, number);
    },
    askingAtOnce,
  );
}

const pipelined = (head: string, body = "") => `${head} HTTP/1.1\r\nhost: x\r\n${body || "\r\n"}`;
const unsigned = [
  pipelined("GET /docs/swagger-ui-bundle.js"),
  pipelined("GET /openapi/a.json"),
  pipelined("GET /healthz"),
  pipelined("GET /readyz"),
  pipelined("GET /none"),
  "GET / HTTP/1.1\r\n\r\n",
  pipelined("PUT /healthz"),
  pipelined("GET /v1/events"),
  pipelined(
    "POST /v1/coupons/redeem",
    `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(900)}0\r\n\r\n`,
  ),
];

function badlySigned(accessKey: string): string {
  const headers = [
    `x-svc-access-key: ${accessKey}`,
    `x-svc-timestamp: ${Math.floor(Date.now() / 1_000)}`,
    `x-svc-nonce: ${"n".repeat(16)}`,
    `x-svc-signature: ${"0".repeat(64)}`,
    "content-type: application/json",
    "content-length: 60000",
  ];
  return pipelined("POST /v1/coupons/redeem", `${headers.join("\r\n")}\r\n\r\n${" ".repeat(60_000)}`);
}

/** Pipelines requests of every kind without end and reads nothing. A client that is cut connects again. */
export async function pipeline(target: Target, count: number): Promise<Held> {
  const sockets = new Set<Socket>();
  let isOver = false;
  async function keep(number: number): Promise<void> {
    const socket = await open(target);
    if (socket === null || isOver) return void socket?.destroy();
    sockets.add(socket.pause());
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(keep, 100, number).unref();
    });
    const kinds = [...unsigned, badlySigned(target.accessKey), badlySigned(`ak_${randomBytes(8).toString("hex")}`)];
    const bytes = Buffer.from(kinds[number % kinds.length]!.repeat(60_000 / kinds[number % kinds.length]!.length + 1));
    const send = (): boolean => socket.write(bytes, () => socket.destroyed || send());
    send();
  }
  await each(count, keep);
  return {
    open: () => sockets.size,
    letGo() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

// isSlow: sends endless headers, one line at a time. A client that is disconnected connects again.
export async function hold(target: Target, count: number, isSlow: boolean): Promise<Held> {
  const sockets = new Set<Socket>();
  let isOver = false;
  async function keep(): Promise<void> {
    const socket = await open(target);
    if (socket === null || isOver) return void socket?.destroy();
    sockets.add(socket);
    socket.resume();
    if (isSlow) socket.write("POST /v1/coupons/redeem HTTP/1.1\r\nhost: x\r\n");
    socket.once("close", () => {
      sockets.delete(socket);
      if (!isOver) setTimeout(keep, 100).unref();
    });
  }
  await each(count, keep);
  const dripping = setInterval(() => {
    if (isSlow) for (const socket of sockets) socket.write("x-slow: 1\r\n");
  }, 1_000);
  return {
    open: () => sockets.size,
    letGo() {
      isOver = true;
      clearInterval(dripping);
      for (const socket of sockets) socket.destroy();
    },
  };
}
