// A subscriber's side: what came to it, and answers as a test wants them.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { Webhook } from "standardwebhooks";

export type Received = { path: string; id: string; headers: IncomingHttpHeaders; body: string; at: number };
export type Answer = (response: ServerResponse, received: Received) => void;
export type Receiver = {
  url: string;
  port: number;
  received: Received[];
  connections: number;
  // The most requests that were open at one moment, by path.
  most: Map<string, number>;
  answer: Answer;
};

export const take: Answer = (response) => void response.writeHead(204).end();
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end("{}");
// Neither an answer nor an end.
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
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
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

// As a receiver checks it, by the library that the specification's authors publish; throws when the signature is wrong.
export function verify(secret: string, { headers, body }: Received): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
