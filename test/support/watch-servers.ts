// Sees every answer that the HTTP server of src/http/listener.ts sends in this process, whoever asked: those of its
// handler, those while it starts and stops, and those to input that is not HTTP. Spawned programs load this file too
// (watch-program.ts), so it imports nothing but Node.
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Socket } from "node:net";

export type Answered = {
  /** Null: what arrived was not an HTTP request. */
  request: { method: string; target: string } | null;
  accessKey: string | null;
  status: number;
  headers: Record<string, unknown>;
  /** Whole if it is JSON; other bodies are left out. */
  text: string;
};
type Sent = Pick<Answered, "status" | "headers" | "text">;
/** The response is null if there was no request. */
type OnAnswer = (answered: Answered, response: ServerResponse | null) => void;
type Started = { request: IncomingMessage; response: ServerResponse; server: Server };

/** Calls `onAnswer` just before an answer ends, so a program that is killed has sent nothing unseen. */
export function watchServers(onAnswer: OnAnswer): void {
  subscribe("http.server.request.start", (message) => {
    const { request, response, server } = message as Started;
    if (!isOurs(server)) return;
    const { method = "", url = "", headers } = request;
    const accessKey = headers["x-svc-access-key"];
    record(response, (sent) =>
      onAnswer(
        { request: { method, target: url }, accessKey: typeof accessKey === "string" ? accessKey : null, ...sent },
        response,
      ),
    );
  });
  // The server writes the answers to input that is not HTTP straight to the socket.
  const { end } = Socket.prototype;
  Socket.prototype.end = function endAndWatch(this: Socket & { server?: Server }, ...args: unknown[]) {
    const [answer] = args;
    if (typeof answer === "string" && answer.startsWith("HTTP/1.1 ") && isOurs(this.server))
      onAnswer({ request: null, accessKey: null, ...parse(answer) }, null);
    return Reflect.apply(end, this, args) as Socket;
  } as typeof end;
}

// No other server of the service or of the tests listens for this event.
function isOurs(server: Server | null | undefined): boolean {
  return (server?.listenerCount("checkExpectation") ?? 0) > 0;
}

// Keeps what is written to a response.
function record(response: ServerResponse, onEnd: (sent: Sent) => void): void {
  const pieces: Buffer[] = [];
  let given: Record<string, unknown> = {};
  const { writeHead, write, end } = response;
  const readHeaders = () => toLowerCase({ ...response.getHeaders(), ...given });
  const keep = (piece: unknown) => {
    const isText = typeof piece === "string" || piece instanceof Uint8Array;
    if (isText && String(readHeaders()["content-type"]).startsWith("application/json")) pieces.push(Buffer.from(piece));
  };
  response.writeHead = function writeHeadAndKeep(this: ServerResponse, ...args: unknown[]) {
    given = toRecord(args.at(-1));
    return Reflect.apply(writeHead, this, args) as ServerResponse;
  } as typeof writeHead;
  response.write = function writeAndKeep(this: ServerResponse, ...args: unknown[]) {
    keep(args[0]);
    return Reflect.apply(write, this, args) as boolean;
  } as typeof write;
  response.end = function endAndKeep(this: ServerResponse, ...args: unknown[]) {
    if (!response.writableEnded) {
      keep(args[0]);
      onEnd({ status: response.statusCode, headers: readHeaders(), text: Buffer.concat(pieces).toString("utf8") });
    }
    return Reflect.apply(end, this, args) as ServerResponse;
  } as typeof end;
}

function toRecord(headers: unknown): Record<string, unknown> {
  if (!Array.isArray(headers)) return typeof headers === "object" ? { ...headers } : {};
  const pairs = Array.from({ length: headers.length / 2 }, (_, index) => headers.slice(2 * index, 2 * index + 2));
  return Object.fromEntries(pairs) as Record<string, unknown>;
}

const toLowerCase = (headers: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

function parse(answer: string): Sent {
  const [head = "", text = ""] = answer.split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]);
  return { status: Number(first.split(" ")[1]), headers: toLowerCase(Object.fromEntries(headers)), text };
}
