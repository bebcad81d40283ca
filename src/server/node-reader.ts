// The undocumented parts of node's HTTP server that turns.ts uses: the listener that gives bytes to its parser, and the
// parser's way to read the socket itself ("consume"), which a listener for data ends. If a version of node lacks
// "consume", known callers are read like strangers.
import type { Socket } from "node:net";

export type Reader = {
  /** Gives bytes to node's parser. */
  feed(bytes: Buffer): void;
  /** Lets node read the socket itself. False if it cannot. */
  giveToNode(): boolean;
  takeBack(): void;
};

type Listener = (...parameters: unknown[]) => void;
type NodeListeners = Record<"data" | "pause" | "resume", Listener>;
type NodeParser = { consume?(handle: unknown): void };
type NodeSocket = Socket & { parser: NodeParser | null; _handle: unknown };

const nothing = () => {};

/** From then on, `onData` gets the bytes that the socket reads. Call it once node's server has its listeners. */
export function takeReader(socket: Socket, onData: (chunk: Buffer) => void): Reader {
  const first = (event: keyof NodeListeners) => (socket.listeners(event)[0] ?? nothing) as Listener;
  const ofNode: NodeListeners = { data: first("data"), pause: first("pause"), resume: first("resume") };
  const ours: NodeListeners = { ...ofNode, data: (chunk) => onData(chunk as Buffer) };
  replaceListeners(socket, ofNode, ours);
  return {
    feed: (bytes) => ofNode.data(bytes),
    giveToNode() {
      const { parser, _handle } = socket as NodeSocket;
      if (parser?.consume === undefined || socket.readableLength > 0 || isOver(socket)) return false;
      replaceListeners(socket, ours, ofNode);
      Object.assign(parser, { _consumed: true });
      parser.consume(_handle);
      return true;
    },
    takeBack: () => replaceListeners(socket, ofNode, ours),
  };
}

/** Whether the connection was refused, ended by us, or handed over. What the client still sends is discarded. */
export function isOver(socket: Socket): boolean {
  return socket.destroyed || socket.writableEnded || !(socket as NodeSocket).parser;
}

// Node's listeners for pause and resume stop and start the system's reading at once. A new listener for data removes
// them.
function replaceListeners(socket: Socket, before: NodeListeners, after: NodeListeners): void {
  for (const event of ["data", "pause", "resume"] as const) socket.off(event, before[event]);
  for (const event of ["data", "pause", "resume"] as const) socket.on(event, after[event]);
}
