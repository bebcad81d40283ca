// A webhook subscriber: it records what it receives, and answers as the test chooses.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { Webhook } from "standardwebhooks";
import { listenOnLoopback } from "./listen.ts";

export type Received = { path: string; id: string; headers: IncomingHttpHeaders; body: string };
export type Answer = (response: ServerResponse, received: Received) => void;
export type Receiver = {
  url: string;
  port: number;
  received: Received[];
  connections: number;
  answer: Answer;
};

export const take: Answer = (response) => void response.writeHead(204).end();
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end("{}");
// Sends no answer and keeps the connection open.
export const hang: Answer = () => {};

export async function startReceiver(
  t: Pick<Test, "teardown">,
  answer: Answer = take,
  host = "127.0.0.1",
): Promise<Receiver> {
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const body = await text(request).catch(() => null);
    if (body === null) return;
    const { url, headers } = request;
    const received = { path: url!, id: String(headers["webhook-id"]), headers, body };
    receiver.received.push(received);
    receiver.answer(response, received);
  });
  server.on("connection", () => (receiver.connections += 1));
  const port = await listenOnLoopback(server, host);
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const receiver: Receiver = { url: `http://${host}:${port}`, port, received: [], connections: 0, answer };
  return receiver;
}

// Verifies the signature with the reference library of Standard Webhooks, and throws if it is wrong.
export function verify(secret: string, { headers, body }: Received): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
