// The node server under the app: limits on input, answers to input that is not HTTP, and an orderly shutdown.
//
// The port is opened before anything else, so a program whose port is taken changes nothing. The server is in one of
// two modes:
//
//   starting  GET /healthz is 200, because the process runs. Every other request waits a little, and then gets 503.
//   serving   the handler answers, first the requests that wait.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Config, Limits } from "../config/config.ts";
import { beforeDeadline } from "../common/deadline.ts";
import { newId } from "../formats/id.ts";
import type { Logger } from "../common/log.ts";
import { boundConnections, type Connections } from "../server/connections.ts";
import { openPort } from "../server/open-port.ts";
import { Unavailable } from "../common/unavailable.ts";
import { createDrain, type Drain } from "./drain.ts";
import { invalid, jsonHeaders, Problem, toAnswer, toProblem } from "./problem.ts";
import { splitTarget } from "./router.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;
// An answer that was sent here, without the handler.
export type Refused = { request_id: string; status: number; code: string };
export type Service = { handler: Handler; onRefused?: (refused: Refused) => void; onDropped?: () => void };
export type Listening = {
  url: string;
  connections(): number;
  serve(service: Service): void;
  stop(): Promise<void>;
};
export type ListenConfig = Pick<Config, "host" | "port" | "limits">;

// How often node checks for late headers and bodies. With its default of 30 s, headers could take four times their
// limit.
const checkLateEveryMs = 1_000;
// How long a client that did not send HTTP may take to read its answer.
const clientClosesWithinMs = 1_000;
// `serve` starts in less time, so a restart costs no client an answer. Every answer is promised within 4 s.
const waitForStartMs = 1_000;

export async function listen({ host, port, limits }: ListenConfig, log: Logger): Promise<Listening> {
  const refuse = (refused: Refused) => {
    log.info(refused);
    service?.onRefused?.(refused);
  };
  let service: Service | null = null;
  const started = Promise.withResolvers<Service>();
  const handle: Handler = async (request, response) => {
    try {
      if (service === null) await answerWhileStarting(request, response, { started: started.promise, refuse });
      else await service.handler(request, response);
    } catch (error) {
      // The handler answers its own errors. One that it missed costs this request, not the program.
      log.error({ err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else refuse(answerProblem(request, response, toProblem(error)));
    }
  };
  const onDropped = () => service?.onDropped?.();
  const { server, connections, drain } = createHttpServer(handle, { limits, refuse, onDropped });
  const url = await openPort(server, { host, port, settings: { host: "HOST", port: "PORT" } });
  return {
    url,
    connections: connections.count,
    serve(ready) {
      service = ready;
      started.resolve(ready);
    },
    stop: drain.stop,
  };
}

type Parts = { limits: Limits; refuse: (refused: Refused) => void; onDropped: () => void };
type Created = { server: Server; connections: Connections; drain: Drain };

function createHttpServer(handler: Handler, { limits, refuse, onDropped }: Parts): Created {
  const options = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutSeconds * 1_000,
    requestTimeout: limits.requestTimeoutSeconds * 1_000,
    keepAliveTimeout: limits.keepAliveTimeoutSeconds * 1_000,
    connectionsCheckingInterval: checkLateEveryMs,
    // Node does not check the host here: the handler refuses a request without one, so the answer has the usual body.
    requireHostHeader: false,
  };
  const server = createServer(options);
  const drain = createDrain(server);
  const connections = boundConnections(server, { most: limits.connections, onRefused: onDropped });
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    if (connections.admit(request, response) && drain.admit(request, response)) void handler(request, response);
  };
  server.on("request", handle);
  // A client that ends its side after its requests gets their answers, and then the end of the connection. Node leaves
  // the property out of its types and documents.
  Object.assign(server, { httpAllowHalfOpen: true });
  // A client that sends `Expect: 100-continue` before a body that is too large gets its 413 at once.
  server.on("checkContinue", (request, response) => {
    if (!(Number(request.headers["content-length"]) > limits.bodyBytes)) response.writeContinue();
    handle(request, response);
  });
  // HTTP allows a server to ignore any other expectation.
  server.on("checkExpectation", handle);
  server.on("connect", (_, socket) => {
    socket.on("error", () => socket.destroy());
    refuse(answerOn(socket as Socket, "404 Not Found", new Problem("ROUTE_NOT_FOUND")));
    (socket as Socket).destroySoon();
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === "ECONNRESET" || !isTurnOfUnreadable(drain.latest(socket)))
      return void socket.destroy();
    refuse(refuseUnreadable(error, socket));
    setTimeout(() => socket.destroy(), clientClosesWithinMs).unref();
  });
  return { server, connections, drain };
}

type Starting = { started: Promise<Service>; refuse: (refused: Refused) => void };

async function answerWhileStarting(
  request: IncomingMessage,
  response: ServerResponse,
  { started, refuse }: Starting,
): Promise<void> {
  if (splitTarget(request.url!).path === "/healthz")
    return void response.writeHead(200, { ...jsonHeaders, "x-request-id": newId("req") }).end('{"ok":true}');
  const service = await beforeDeadline(started, performance.now() + waitForStartMs).catch(() => null);
  // The client may be gone.
  if (response.destroyed) return;
  if (service !== null) await service.handler(request, response);
  else refuse(answerProblem(request, response, toProblem(new Unavailable("starting"))));
}

function answerProblem(request: IncomingMessage, response: ServerResponse, problem: Problem): Refused {
  const requestId = newId("req");
  const { status, headers, body } = toAnswer(problem, requestId);
  response.writeHead(status, { ...jsonHeaders, "x-request-id": requestId, ...headers }).end(body);
  // Node discards what still arrives of the body.
  request.resume();
  return { request_id: requestId, status, code: problem.code };
}

// Whether unreadable input may be answered now. It may not while a complete request is unanswered: the client would
// mistake this refusal for the answer to that request, and believe that nothing was done.
function isTurnOfUnreadable(latest: ServerResponse | null): boolean {
  if (latest === null || latest.writableFinished) return true;
  return latest.socket !== null && !latest.req.complete;
}

// Input that node cannot read as HTTP never becomes a request. It gets an answer of the usual shape here.
function refuseUnreadable({ code }: NodeJS.ErrnoException, socket: Socket): Refused {
  if (code === "HPE_HEADER_OVERFLOW")
    return answerOn(socket, "431 Request Header Fields Too Large", new Problem("PAYLOAD_TOO_LARGE"));
  const problem = invalid([{ path: "(request)", message: "is not HTTP or arrived too slowly" }]);
  return answerOn(socket, code === "ERR_HTTP_REQUEST_TIMEOUT" ? "408 Request Timeout" : "400 Bad Request", problem);
}

function answerOn(socket: Socket, status: string, problem: Problem): Refused {
  const requestId = newId("req");
  const { body } = toAnswer(problem, requestId);
  const headers = {
    connection: "close",
    ...jsonHeaders,
    "x-request-id": requestId,
    "content-length": Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join("")}\r\n${body}`);
  return { request_id: requestId, status: parseInt(status, 10), code: problem.code };
}
