// Bounds what clients can make a server hold: connections, requests of each (turns.ts), and bytes of answers.
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { takeTurns, type Turns } from "./turns.ts";

export type Connections = Pick<Turns, "admit"> & { count(): number };

type Bounds = {
  most: number;
  /** A connection was closed because there are too many. */
  onRefused?: () => void;
};

// A connection is cut if a request or an answer on it makes no progress for this long, or for twice as long while bytes
// wait to be sent.
const stalledAfterMs = 60_000;
const checkUnsentEveryMs = 1_000;
// The limit for all answers that wait for their clients to read.
const mostUnsentBytes = 64 * 1024 * 1024;

export function boundConnections(server: Server, { most, onRefused }: Bounds): Connections {
  const turns = takeTurns(server);
  const sockets = new Set<Socket>();
  server.timeout = stalledAfterMs;

  // When there are too many connections, a new one replaces the stranger that has been connected longest. Strangers
  // whose first request is under way keep their place, and so does every caller.
  server.on("connection", (socket: Socket) => {
    if (sockets.size >= most) {
      onRefused?.();
      const [stranger = socket] = turns.strangers();
      stranger.destroy();
    }
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });

  const checking = setInterval(createUnsentCheck(sockets), checkUnsentEveryMs);
  server.once("close", () => clearInterval(checking));
  checking.unref();
  return { admit: turns.admit, count: () => sockets.size };
}

// Cuts off the clients that have left their answers unread longest, until the remaining answers fit into the limit.
function createUnsentCheck(sockets: ReadonlySet<Socket>): () => void {
  // Connections with unread answers, in the order in which they began to wait.
  const waiting = new Set<Socket>();
  return () => {
    let unsent = 0;
    for (const socket of waiting) if (socket.writableLength === 0) waiting.delete(socket);
    for (const socket of sockets) {
      if (socket.writableLength > 0) waiting.add(socket);
      unsent += socket.writableLength;
    }
    for (const socket of waiting) {
      if (unsent <= mostUnsentBytes) return;
      unsent -= socket.writableLength;
      socket.destroy();
    }
  };
}
