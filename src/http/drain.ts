// An orderly stop of the HTTP server.
//
// A client must not lose a request because the server closes its connection at the same moment. So an answer announces
// the end of each connection (Connection: close). Only a connection that was not used for a second is closed without an
// answer. Either way the server ends its side first and reads on until the client has ended its own: a connection that
// is closed with unread bytes is reset, and the client may lose the answer. Connections that wait to be accepted are
// accepted first, because the system would reset them.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as TcpServer, type Socket } from "node:net";
import { setImmediate as endOfTurn } from "node:timers/promises";

export type Drain = {
  /** Counts a request. Returns false if it came after the last answer of its connection: it must not be handled. */
  admit(request: IncomingMessage, response: ServerResponse): boolean;
  /** The latest response on a connection. */
  latest(socket: Socket): ServerResponse | null;
  /** Refuses new connections as soon as those that wait are accepted. Resolves when all connections are closed. */
  stop(): Promise<void>;
};
type Connection = {
  latest: ServerResponse | null;
  openResponses: number;
  usedAt: number;
  // Bytes read until usedAt.
  bytesRead: number;
  isEnding: boolean;
};

// The server accepts connections for at most this long, because new ones may keep coming.
const acceptWithinMs = 2_000;
const idleAfterMs = 1_000;
// equivalent mutant (literal): it only looks less often
const checkEveryMs = 50;
// How long a client may take to close its side after it got its answer.
const clientClosesWithinMs = 1_000;
// A request that arrives just before its connection counts as idle gets the usual time for an answer. Then it is cut
// off.
const cutAfterMs = 5_000;

export function createDrain(server: Server): Drain {
  const connections = new Map<Socket, Connection>();
  let isStopping = false;

  server.on("connection", (socket: Socket) => {
    connections.set(socket, {
      latest: null,
      openResponses: 0,
      usedAt: performance.now(),
      bytesRead: 0,
      isEnding: false,
    });
    socket.once("close", () => connections.delete(socket));
  });

  function endIdle(): void {
    const now = performance.now();
    for (const [socket, connection] of connections) {
      if (connection.bytesRead !== socket.bytesRead) noteUse(connection, socket);
      const isIdle = connection.openResponses === 0 && now - connection.usedAt >= idleAfterMs;
      if (connection.isEnding || !isIdle) continue;
      connection.isEnding = true;
      endSide(socket);
    }
  }

  return {
    admit(request, response) {
      const { socket } = request;
      const connection = connections.get(socket);
      // The connection closed in the meantime.
      if (connection === undefined) return true;
      if (connection.isEnding) return false;
      connection.latest = response;
      connection.openResponses += 1;
      response.once("close", () => {
        connection.openResponses -= 1;
        noteUse(connection, socket);
      });
      if (isStopping) endWithAnswer(connection, socket);
      return true;
    },
    latest: (socket) => connections.get(socket)?.latest ?? null,
    async stop() {
      // This comes before any answer announces the end, because its client would then open another connection.
      await acceptWaiting(server);
      isStopping = true;
      // Server.close of node:http closes idle connections at once, so this calls the one of node:net.
      const closed = new Promise<void>((resolve) => TcpServer.prototype.close.call(server, () => resolve()));
      for (const [socket, connection] of connections)
        if (connection.openResponses > 0) endWithAnswer(connection, socket);
      // Requests that have arrived are read before the check of setImmediate.
      const idle = setInterval(() => setImmediate(endIdle), checkEveryMs);
      const cut = setTimeout(() => connections.forEach((_, socket) => socket.destroy()), cutAfterMs);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
      // Stops the timers of node:http.
      server.close();
    },
  };
}

// A turn of the event loop accepts a connection if one waits.
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = 0;
  const count = (): void => void (accepted += 1);
  const events = ["connection", "drop"];
  for (const event of events) server.on(event, count);
  const until = performance.now() + acceptWithinMs;
  // Waits for the rest of this turn.
  await endOfTurn();
  for (let before = -1; accepted !== before && performance.now() < until;) {
    before = accepted;
    await endOfTurn();
  }
  for (const event of events) server.off(event, count);
}

function noteUse(connection: Connection, socket: Socket): void {
  connection.usedAt = performance.now();
  connection.bytesRead = socket.bytesRead;
}

// Makes the latest answer the last one of its connection. If its head is sent already, the connection ends when it is
// idle. Node closes a socket with destroySoon after such an answer, which would reset a client that still sends.
function endWithAnswer(connection: Connection, socket: Socket): void {
  if (connection.latest!.headersSent) return;
  connection.latest!.setHeader("Connection", "close");
  connection.isEnding = true;
  socket.destroySoon = () => endSide(socket);
}

function endSide(socket: Socket): void {
  socket.end();
  const cut = setTimeout(() => socket.destroy(), clientClosesWithinMs);
  socket.once("close", () => clearTimeout(cut));
}
