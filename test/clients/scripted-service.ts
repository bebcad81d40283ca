// A server that gives prepared answers, one for each request, and keeps what it received. Then the last answer repeats,
// or all of them in turn.
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { createClient, type ClientOptions } from "../../clients/typescript/src/index.ts";
import { listenOnLoopback } from "../support/listen.ts";

export type Received = { method: string; target: string; headers: IncomingHttpHeaders; body: string };
export type Script = (response: ServerResponse) => void;
export type Scripted = { url: string; received: Received[]; sockets: { opened: number; open: number } };

export const accessKey = "ak_a";
export const secret = "test_secret_0123456789abcdefghijklmnop";

/** An answer as the service gives it. */
export function answer(status: number, body: object, headers: Record<string, string> = {}): Script {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "r-1", ...headers });
    response.end(JSON.stringify(body));
  };
}

export function refusal(status: number, code: string, details: unknown = null, headers = {}): Script {
  return answer(status, { code, message: "No.", request_id: "r-1", details }, headers);
}

/** Closes the connection in place of an answer. */
export const cut: Script = (response) => response.destroy();

/** Neither answers nor closes. */
export const hang: Script = () => {};

export async function startScripted(
  t: Test,
  scripts: Script[],
  { isRepeating = false, host = "127.0.0.1" } = {},
): Promise<Scripted> {
  const received: Received[] = [];
  const sockets = { opened: 0, open: 0 };
  const server = createServer(async (request, response) => {
    const body = await text(request);
    received.push({ method: request.method!, target: request.url!, headers: request.headers, body });
    const index = received.length - 1;
    scripts[isRepeating ? index % scripts.length : Math.min(index, scripts.length - 1)]!(response);
  });
  // Node's default of 5 s would end connections that a test counts.
  server.keepAliveTimeout = 600_000;
  server.on("connection", (socket) => {
    sockets.opened += 1;
    sockets.open += 1;
    socket.on("close", () => (sockets.open -= 1));
  });
  const port = await listenOnLoopback(server, host);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`, received, sockets };
}

/** A client of a scripted service. */
export async function start(t: Test, scripts: Script[], options: Partial<ClientOptions> = {}) {
  const { url, received } = await startScripted(t, scripts);
  const client = createClient<"A">({ url, accessKey, secret, ...options });
  t.teardown(() => client.close());
  return { client, received };
}

/** Returns the error of a call that must fail. */
export async function fail(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => Promise.reject(new Error("the call succeeded")),
    (error: Error) => error,
  );
}
