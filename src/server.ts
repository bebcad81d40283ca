// The node server under the app: limits on what it reads, an answer for what is not HTTP, an orderly end.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { maxBodyBytes } from "./body.ts";
import { newId } from "./id.ts";
import { toAnswer, invalid, Problem } from "./problem.ts";

export type Listening = { url: string; stop(): Promise<void> };
export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

// Requests under way at the end have as long as an answer may take; then their connections are cut.
const drainMs = 4_000;

export function listen(handler: Handler, { host, port }: { host: string; port: number }): Promise<Listening> {
  const server = createHttpServer(handler);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve({ url: urlOf(server), stop: () => close(server) });
    });
  });
}

function createHttpServer(handler: Handler): Server {
  const server = createServer({ maxHeaderSize: 16 * 1024, requireHostHeader: false, headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 }, handler);
  // Who asks before sending a large body is told no before it comes.
  server.on("checkContinue", (request, response) => {
    if (Number(request.headers["content-length"] ?? 0) <= maxBodyBytes) response.writeContinue();
    handler(request, response);
  });
  // What node would answer by itself, without a body and an id: any other expectation with 417, a request without a Host,
  // which we have no use for, with 400 (requireHostHeader), a CONNECT not at all.
  server.on("checkExpectation", handler);
  server.on("connect", (_, socket: Socket) => {
    // Node has let go of it: nobody else would hear its errors, or end it.
    socket.on("error", () => socket.destroy());
    refuse(socket, "404 Not Found", new Problem("ROUTE_NOT_FOUND"));
    socket.destroySoon();
  });
  server.on("clientError", refuseUnreadable);
  return server;
}

// What node could not read as HTTP never becomes a request; it gets an answer of the usual shape all the same.
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const isLarge = error.code === "HPE_HEADER_OVERFLOW";
  const problem = isLarge ? new Problem("PAYLOAD_TOO_LARGE") : invalid([{ path: "(request)", message: "is not HTTP or came too slowly" }]);
  refuse(socket, isLarge ? "431 Request Header Fields Too Large" : error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "408 Request Timeout" : "400 Bad Request", problem);
}

// By hand: there is no response to write to.
function refuse(socket: Socket, status: string, problem: Problem): void {
  const requestId = newId("req");
  const { body } = toAnswer(problem, requestId);
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `x-request-id: ${requestId}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function urlOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

// New connections are refused at once. A kept-alive connection counts as idle only between two requests, so idle
// ones are looked for again and again.
async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const cut = setTimeout(() => server.closeAllConnections(), drainMs);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}
