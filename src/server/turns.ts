// Reads requests so that no connection and no number of connections delays the others.
//
// Node parses all that it reads from a connection at once: up to 64 KiB, so thousands of small pipelined requests in
// one turn of the event loop. This module gives node's parser the head of one request at a time, and the next one when
// the answer has left. A connection is in one of two modes:
//
//   stranger  No request on it was authenticated, or it pipelines. In each turn of the event loop, strangers begin a
//             few requests in the order in which they came. The others wait unparsed, so that known callers go first.
//   known     A request on it was authenticated. Node reads it directly, which saves 15 µs a request. The first
//             request that is pipelined makes it a stranger for good.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isOver, takeReader, type Reader } from "./node-reader.ts";

export type Turns = {
  /** Counts a request. False if the connection is over, or pipelines too much: then it must not be handled. */
  admit(request: IncomingMessage, response: ServerResponse): boolean;
  /** Connections of strangers, the oldest first, that may be closed to make room: nothing of value is under way. */
  strangers(): Iterable<Socket>;
};

type Reading = {
  socket: Socket;
  reader: Reader;
  /** Whether node reads it directly. */
  isKnown: boolean;
  hasPipelined: boolean;
  isAuthenticated: boolean;
  hasAnswered: boolean;
  latest: IncomingMessage | null;
  openAnswers: number;
  /** We paused it. What was read waits in the socket. */
  isHeld: boolean;
  /** Its turn has come: the next bytes need not wait. */
  hasTurn: boolean;
};

// What strangers may begin in one turn of the event loop.
const mostBegun = 16;
const longestTurnMs = 2;
// A turn accepts one connection. So while new connections come, strangers get a fifth of the time, and no new
// connection waits long to be accepted.
const pausesWhileAccepting = 4;
// How many requests a known caller may pipeline: as many signed requests as node reads at once.
const mostPipelined = 300;
const blankLine = Buffer.from("\r\n\r\n");
// The shortest possible head of a request.
const shortestHead = "GET / HTTP/1.0\r\n\r\n".length;
// Strangers' bytes reach the parser in pieces of this size, because each chunk of a chunked body costs a call.
const largestPiece = 1_024;

const readings = new WeakMap<Socket, Reading>();

/** Notes that a request on this connection was authenticated. */
export function noteAuthenticated(socket: Socket): void {
  const reading = readings.get(socket);
  if (reading !== undefined) reading.isAuthenticated = true;
}

export function takeTurns(server: Server): Turns {
  const strangers = new Set<Reading>();

  server.on("connection", (socket: Socket) => {
    const reading: Reading = createReading(socket, (chunk) => read(reading, chunk));
    readings.set(socket, reading);
    strangers.add(reading);
    queue.noteAccepted();
    socket.once("close", () => {
      strangers.delete(reading);
      queue.delete(reading);
    });
  });

  function noteAnswered(reading: Reading): void {
    reading.openAnswers -= 1;
    reading.hasAnswered = true;
    if (reading.isAuthenticated) strangers.delete(reading);
    if (reading.isHeld && !isBusy(reading)) queue.add(reading);
    else if (reading.isAuthenticated && !reading.hasPipelined && !reading.isKnown)
      reading.isKnown = reading.reader.giveToNode();
  }

  return {
    admit(request, response) {
      const reading = readings.get(request.socket);
      if (reading === undefined) return true;
      if (request.socket.destroyed) return false;
      if (reading.isKnown && reading.openAnswers > 0) {
        [reading.isKnown, reading.hasPipelined] = [false, true];
        reading.reader.takeBack();
      }
      if (reading.openAnswers >= mostPipelined) {
        request.socket.destroy();
        return false;
      }
      reading.latest = request;
      reading.openAnswers += 1;
      response.once("close", () => noteAnswered(reading));
      return true;
    },
    *strangers() {
      for (const { socket, openAnswers, hasAnswered } of strangers)
        if (!socket.destroyed && (openAnswers === 0 || hasAnswered)) yield socket;
    },
  };
}

function hold(reading: Reading, bytes: Buffer): void {
  reading.isHeld = true;
  reading.socket.pause();
  reading.socket.unshift(bytes);
}

function read(reading: Reading, chunk: Buffer): void {
  if (isOver(reading.socket)) return;
  reading.hasPipelined ||= isBusy(reading) || (reading.openAnswers === 0 && hasTwoHeads(chunk));
  if (reading.isHeld || isBusy(reading)) return hold(reading, chunk);
  if (!reading.hasTurn && !queue.mayBegin(reading)) {
    hold(reading, chunk);
    return queue.add(reading);
  }
  reading.hasTurn = false;
  let rest = chunk;
  do {
    const end = findEndOfHead(rest);
    reading.reader.feed(rest.subarray(0, end));
    rest = rest.subarray(end);
    if (rest.length === 0 || isOver(reading.socket)) return;
  } while (!isBusy(reading) && queue.mayBegin(reading));
  hold(reading, rest);
  if (!isBusy(reading)) queue.add(reading);
}

function createReading(socket: Socket, onData: (chunk: Buffer) => void): Reading {
  return {
    socket,
    reader: takeReader(socket, onData),
    isKnown: false,
    hasPipelined: false,
    isAuthenticated: false,
    hasAnswered: false,
    latest: null,
    openAnswers: 0,
    isHeld: false,
    hasTurn: false,
  };
}

// Whether a complete request is unanswered. Then no other is read.
function isBusy({ openAnswers, latest }: Reading): boolean {
  return openAnswers > 1 || (openAnswers === 1 && latest!.complete);
}

// The end of the first head in these bytes, so that they begin at most one request, or two if one began before.
function findEndOfHead(bytes: Buffer): number {
  const blank = bytes.subarray(0, largestPiece).indexOf(blankLine, shortestHead - blankLine.length);
  return blank === -1 ? Math.min(bytes.length, largestPiece) : blank + blankLine.length;
}

// If a body looks like another head, its connection loses only the fast way of being read.
function hasTwoHeads(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 2 * largestPiece);
  const blank = start.indexOf(blankLine);
  return blank !== -1 && start.includes(blankLine, blank + blankLine.length);
}

// One queue for all ports of the process, because they share one event loop.
const queue = createQueue();

type Queue = {
  add(reading: Reading): void;
  delete(reading: Reading): void;
  /** Counts a stranger's request, or a part of one, if it may begin now. */
  mayBegin(reading: Reading): boolean;
  noteAccepted(): void;
};

// Strangers that wait for their turn: first the urgent ones, but in each turn at least one of the others.
function createQueue(): Queue {
  const urgent = new Set<Reading>();
  const other = new Set<Reading>();
  // A stranger is urgent if it sends one request at a time, as health checks do, and its next request begins.
  const isUrgent = ({ hasPipelined, openAnswers }: Reading) => !hasPipelined && openAnswers === 0;
  let isCounting = false;
  let hasAccepted = false;
  let begun = 0;
  let beganAt = 0;
  let until = 0;
  let restUntil = 0;

  // Counts until all that node has read in this turn of the event loop is handled.
  function count(): void {
    if (isCounting) return;
    isCounting = true;
    const most = Math.min(urgent.size + other.size, mostBegun);
    for (let number = 0; number < most; number += 1) setImmediate(beginNext);
    setImmediate(endTurn);
  }

  function begin(): boolean {
    const now = performance.now();
    if (begun === 0) until = now + longestTurnMs;
    if (begun === mostBegun || now >= until || (hasAccepted && now < restUntil)) return false;
    if (begun === 0) beganAt = now;
    begun += 1;
    return true;
  }

  function beginNext(): void {
    const chosen = urgent.size === 0 || (begun === 0 && other.size > 0) ? other : urgent;
    const [next] = chosen;
    if (next === undefined || !begin()) return;
    chosen.delete(next);
    next.isHeld = false;
    next.hasTurn = true;
    next.socket.resume();
  }

  function endTurn(): void {
    if (begun > 0) {
      const now = performance.now();
      restUntil = now + pausesWhileAccepting * (now - beganAt);
    }
    [isCounting, hasAccepted, begun] = [false, false, 0];
    if (urgent.size + other.size > 0) count();
  }

  return {
    add(reading) {
      (isUrgent(reading) ? urgent : other).add(reading);
      count();
    },
    delete(reading) {
      urgent.delete(reading);
      other.delete(reading);
    },
    mayBegin(reading) {
      if (urgent.size > 0 || (!isUrgent(reading) && other.size > 0) || !begin()) return false;
      count();
      return true;
    },
    noteAccepted() {
      hasAccepted = true;
      count();
    },
  };
}
