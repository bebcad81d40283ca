// A webhook subscriber: it records what it receives, and answers as the test chooses.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { Webhook } from "standardwebhooks";
import { listenOnLoopback } from "./listen.ts";

export type Received = { path: string; id: string; headers: IncomingHttpHeaders; body: string; at: number };
export type Answer = (response: ServerResponse, received: Received) => void;
export type Receiver = {
  url: string;
  port: number;
  received: Received[];
  connections: number;
  // The highest number of simultaneously open requests, by path.
  most: Map<string, number>;
  answer: Answer;
};

export const take: Answer = (response) => void response.writeHead(204).end();
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end("{}");
// Sends no answer and keeps the connection open.
export const hang: Answer = () => {};

export async function startReceiver(t: Test, answer: Answer = take, host = "127.0.0.1"): Promise<Receiver> {
  const open = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const path = request.url!;
    open.set(path, (open.get(path) ?? 0) + 1);
    receiver.most.set(path, Math.max(receiver.most.get(path) ?? 0, open.get(path)!));
    response.on("close", () => open.set(path, open.get(path)! - 1));
    response.on("error", () => {});
    const body = await text(request).catch(() => null);
    if (body === null) return;
    const received = {
      path,
      id: String(request.headers["webhook-id"]),
      headers: request.headers,
      body,
      at: performance.now(),
    };
    receiver.received.push(received);
    receiver.answer(response, received);
  });
  server.on("connection", () => (receiver.connections += 1));
  const port = await listenOnLoopback(server, host);
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const receiver: Receiver = {
    url: `http://${host}:${port}`,
    port,
    received: [],
    connections: 0,
    most: new Map(),
    answer,
  };
  return receiver;
}

// Verifies the signature with the reference library of Standard Webhooks, and throws if it is wrong.
export function verify(secret: string, { headers, body }: Received): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
