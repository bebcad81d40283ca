// A TCP proxy on the loopback address that behaves as networks do: it delays data, goes silent without a reset, or
// closes connections in the middle of an answer.
import { connect, createServer, type Socket } from "node:net";
import { type Address, isSocketFolder } from "../../src/config/database-address.ts";
import { listenOnLoopback } from "./listen.ts";

export type Mode = {
  // Milliseconds by which each chunk is delayed. The order stays.
  delay?: () => number;
  // Nothing passes and nobody is notified: open connections go silent, and new ones get no answer.
  isStalled?: boolean;
  // Whether a connection is closed instead of passing on its first answer.
  cutsConnect?: () => boolean;
  // Whether the connection is closed instead of passing on an answer.
  cutsAnswer?: () => boolean;
};
// delayed: the chunks on their way to each side. A chunk of null ends the connection.
type Link = {
  near: Socket;
  far: Socket | null;
  isLost: boolean;
  delayed: { near: (Buffer | null)[]; far: (Buffer | null)[] };
  dueAt: { near: number; far: number };
  hasAnswered: boolean;
};
type Target = Pick<Address, "host" | "port">;
type State = { target: Target; mode: Mode; links: Set<Link> };

const farSideMs = 1_000;

export async function startProxy(target: Target) {
  const state: State = { target, mode: {}, links: new Set() };
  const { links } = state;
  const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, (near) =>
    accept(state, near),
  );
  const port = await listenOnLoopback(server);
  const cutAll = (): void => {
    for (const link of links) end(state, link);
  };
  return {
    port,
    set: (mode: Mode) => setMode(state, mode),
    /** Closes every connection. */
    cutAll,
    /**
     * The near side of every open connection never hears from the far side again. The far side gives up after a second,
     * as its keepalive would.
     */
    loseAll() {
      for (const link of links) {
        link.isLost = true;
        setFlow(link, false);
        setTimeout(() => link.far?.destroy(), farSideMs);
      }
    },
    async stop(): Promise<void> {
      for (const link of links) link.isLost = false;
      cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function accept(state: State, near: Socket): void {
  const link: Link = {
    near,
    far: null,
    isLost: false,
    delayed: { near: [], far: [] },
    dueAt: { near: 0, far: 0 },
    hasAnswered: false,
  };
  state.links.add(link);
  near.on("error", () => {});
  near.on("close", () => end(state, link));
  if (!state.mode.isStalled) openFarSide(state, link);
}

function connectTo({ host, port }: Target): Socket {
  const place = isSocketFolder(host) ? { path: `${host}/.s.PGSQL.${port}` } : { host, port, noDelay: true };
  // The end of a side passes through like everything else.
  return connect({ ...place, allowHalfOpen: true });
}

function openFarSide(state: State, link: Link): void {
  const { near } = link;
  const far = connectTo(state.target);
  link.far = far;
  far.on("error", () => {});
  far.on("close", () => end(state, link));
  far.on("data", (chunk) => {
    const { cutsAnswer, cutsConnect } = state.mode;
    const cuts = link.hasAnswered ? cutsAnswer : (cutsConnect ?? cutsAnswer);
    link.hasAnswered = true;
    if (cuts?.()) end(state, link);
    else pass(state, link, "near", chunk);
  });
  near.on("data", (chunk) => pass(state, link, "far", chunk));
  far.on("end", () => pass(state, link, "near", null));
  near.on("end", () => pass(state, link, "far", null));
  near.resume();
}

function pass({ mode }: State, link: Link, to: "near" | "far", chunk: Buffer | null): void {
  const waiting = link.delayed[to].push(chunk);
  const now = performance.now();
  const due = Math.max(link.dueAt[to], now + (mode.delay?.() ?? 0));
  link.dueAt[to] = due;
  if (due <= now && waiting === 1) passFirst(link, to);
  else setTimeout(passFirst, due - now, link, to);
}

// Timers count whole milliseconds, so a later one may end first. Whichever ends passes on the chunk that came first.
function passFirst(link: Link, to: "near" | "far"): void {
  const chunk = link.delayed[to].shift()!;
  const socket = link[to];
  if (socket === null || link.isLost || !socket.writable) return;
  if (chunk === null) socket.end();
  else socket.write(chunk);
}

function setMode(state: State, mode: Mode): void {
  const wasStalled = state.mode.isStalled === true;
  state.mode = mode;
  for (const link of state.links) {
    if (link.isLost) continue;
    if (mode.isStalled) setFlow(link, false);
    else if (wasStalled && link.far === null) openFarSide(state, link);
    else if (wasStalled) setFlow(link, true);
  }
}

function end({ links }: State, link: Link): void {
  if (link.isLost || !links.delete(link)) return;
  link.near.destroy();
  link.far?.destroy();
}

function setFlow({ near, far }: Link, isFlowing: boolean): void {
  for (const socket of [near, far]) {
    if (isFlowing) socket?.resume();
    else socket?.pause();
  }
}
