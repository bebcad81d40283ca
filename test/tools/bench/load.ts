// The load generator, a thread of its own: it signs redemptions, sends them over kept-alive connections and checks each
// answer. Closed loop: each connection sends its next request when it has its answer. Open loop (perSecond): each
// request is due at a fixed time, and its latency counts from that time even when no connection is free.
import { once } from "node:events";
import { connect } from "node:net";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { newNonce, signedHeaders } from "../../../clients/typescript/src/signature.ts";
import { waitFor } from "../../support/wait-until.ts";
import type { Coupon } from "./coupons.ts";
import type { Environment } from "./environment.ts";
import { openPacer, sharedNow } from "./pacer.ts";

export type LoadOptions = { connections: number; perSecond?: number };
type Job = LoadOptions & Pick<Environment, "url" | "credential"> & { bodies: string[] };
/** Latencies in milliseconds, one for each redemption. */
export type Load = { seconds: number; latencies: Float64Array };

const role = "load";
const target = "/v1/coupons/redeem";
const withinMs = 600_000;

/** The thread lives through all rounds, so every measured round runs warm code. */
export function openLoader() {
  const thread = new Worker(new URL(import.meta.url), { workerData: role });
  async function ask<T>(message: Job | "go"): Promise<T> {
    thread.postMessage(message);
    const [answer] = await waitFor("the load generator", once(thread, "message"), { withinMs });
    return answer as T;
  }
  return {
    /** Resolves when all requests are signed; calling the returned function sends them. */
    async prepare({ url, credential }: Environment, coupons: Coupon[], { connections, perSecond }: LoadOptions) {
      const bodies = coupons.map(({ body }) => JSON.stringify(body));
      await ask({ url, credential, bodies, connections, ...(perSecond !== undefined && { perSecond }) });
      return () => ask<Load>("go");
    },
    end: () => thread.terminate(),
  };
}

async function prepare({ connections: count, perSecond, bodies, ...service }: Job): Promise<() => Promise<Load>> {
  const requests = bodies.map((body) => signRequest(service, body));
  const connections = await Promise.all(Array.from({ length: count }, () => openConnection(service.url)));
  const pacer = perSecond === undefined ? null : await openPacer(perSecond, requests.length);
  const latencies = new Float64Array(requests.length);
  let begun = 0;

  return async () => {
    const startAt = sharedNow();
    pacer?.start();
    await Promise.all(
      connections.map(async (connection) => {
        while (begun < requests.length) {
          const number = begun++;
          const since = pacer === null ? sharedNow() : await pacer.whenDue(number);
          await connection.send(requests[number]!, '{"ok":true');
          latencies[number] = sharedNow() - since;
        }
      }),
    );
    const seconds = (sharedNow() - startAt) / 1_000;
    for (const connection of connections) connection.end();
    await pacer?.end();
    return { seconds, latencies };
  };
}

function signRequest({ url, credential }: Pick<Job, "url" | "credential">, body: string): Buffer {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signed = { method: "POST", target, timestamp, nonce: newNonce(), body: Buffer.from(body) };
  const headers = {
    host: new URL(url).host,
    "content-type": "application/json",
    "content-length": signed.body.length,
    ...signedHeaders(credential, signed),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${target} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

type Connection = {
  /** Resolves when the whole answer is there. Rejects if it is not 200, or its body begins otherwise. */
  send(bytes: Buffer, expected: string): Promise<void>;
  end(): void;
};

/**
 * A kept-alive connection that carries one request at a time. Written by hand, because Node's own client uses more CPU
 * than the service that it measures.
 */
function openConnection(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url);
  return new Promise((opened, failed) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let chunks: Buffer[] = [];
    let waiting = { expected: "", resolve: () => {}, reject: failed };

    const connection: Connection = {
      send: (bytes, expected) =>
        new Promise((resolve, reject) => {
          waiting = { expected, resolve, reject };
          if (socket.destroyed) reject(new Error("the service closed a connection"));
          else socket.write(bytes);
        }),
      end: () => socket.destroy(),
    };
    socket.once("connect", () => opened(connection));
    socket.on("error", (error) => waiting.reject(error));
    socket.on("close", () => waiting.reject(new Error("the service closed a connection")));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const text = Buffer.concat(chunks).toString("latin1");
      const bodyAt = text.indexOf("\r\n\r\n") + 4;
      if (bodyAt === 3) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1]);
      if (text.length < bodyAt + length) return;
      chunks = [];
      if (text.startsWith("HTTP/1.1 200 ") && text.startsWith(waiting.expected, bodyAt)) waiting.resolve();
      else waiting.reject(new Error(`answered ${text}`));
    });
  });
}

if (workerData === role) {
  let start: () => Promise<Load>;
  parentPort!.on("message", async (message: Job | "go") => {
    if (message === "go") return parentPort!.postMessage(await start());
    start = await prepare(message);
    parentPort!.postMessage("ready");
  });
}
