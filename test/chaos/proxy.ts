// A TCP proxy on the loopback that does to connections what networks do: nothing, delay, silence without a reset, an end in the middle.
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export type Mode = {
  // Milliseconds that each piece is held back; the order stays.
  delay?: () => number;
  // Nothing passes and nobody is told, neither those that are connected nor those that connect.
  isStalled?: boolean;
  // Whether a connection is closed instead of passing its first answer on.
  cutsConnect?: () => boolean;
  // Whether the connection is closed in place of an answer that came for it.
  cutsAnswer?: () => boolean;
};
export type Proxy = {
  port: number;
  set(mode: Mode): void;
  // Closes all that is connected.
  cutAll(): void;
  // Who is connected now never hears of the other side again. The other side gives up after a second, as by its keepalive.
  loseAll(): void;
  stop(): Promise<void>;
};
type Pair = {
  near: Socket;
  far: Socket | null;
  isLost: boolean;
  dueAt: { near: number; far: number };
  hasAnswered: boolean;
};

const otherSideMs = 1_000;

export async function startProxy(target: number): Promise<Proxy> {
  let mode: Mode = {};
  const pairs = new Set<Pair>();

  const server = createServer({ pauseOnConnect: true, noDelay: true }, (near) => {
    const pair: Pair = { near, far: null, isLost: false, dueAt: { near: 0, far: 0 }, hasAnswered: false };
    pairs.add(pair);
    near.on("error", () => {});
    near.on("close", () => end(pair));
    if (!mode.isStalled) open(pair);
  });

  function open(pair: Pair): void {
    const far = connect({ host: "127.0.0.1", port: target, noDelay: true });
    pair.far = far;
    far.on("error", () => {});
    far.on("close", () => end(pair));
    far.on("data", (piece) => {
      const cuts = pair.hasAnswered ? mode.cutsAnswer : (mode.cutsConnect ?? mode.cutsAnswer);
      pair.hasAnswered = true;
      if (cuts?.()) end(pair);
      else pass(pair, "near", piece);
    });
    pair.near.on("data", (piece) => pass(pair, "far", piece));
    far.on("end", () => pass(pair, "near", null));
    pair.near.on("end", () => pass(pair, "far", null));
    pair.near.resume();
  }

  // null: the end.
  function pass(pair: Pair, to: "near" | "far", piece: Buffer | null): void {
    const write = (): void => {
      const socket = pair[to];
      if (socket === null || pair.isLost || !socket.writable) return;
      if (piece === null) socket.end();
      else socket.write(piece);
    };
    const now = performance.now();
    const due = Math.max(pair.dueAt[to], now + (mode.delay?.() ?? 0));
    pair.dueAt[to] = due;
    if (due <= now) write();
    else setTimeout(write, due - now);
  }

  function end(pair: Pair): void {
    if (pair.isLost || !pairs.delete(pair)) return;
    pair.near.destroy();
    pair.far?.destroy();
  }

  function setFlow(pair: Pair, isFlowing: boolean): void {
    for (const socket of [pair.near, pair.far]) {
      if (isFlowing) socket?.resume();
      else socket?.pause();
    }
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: Proxy = {
    port: (server.address() as AddressInfo).port,
    set(next) {
      const wasStalled = mode.isStalled === true;
      mode = next;
      for (const pair of pairs) {
        if (pair.isLost) continue;
        if (mode.isStalled) setFlow(pair, false);
        else if (wasStalled && pair.far === null) open(pair);
        else if (wasStalled) setFlow(pair, true);
      }
    },
    cutAll() {
      for (const pair of pairs) end(pair);
    },
    loseAll() {
      for (const pair of pairs) {
        pair.isLost = true;
        setFlow(pair, false);
        setTimeout(() => pair.far?.destroy(), otherSideMs);
      }
    },
    async stop() {
      for (const pair of pairs) pair.isLost = false;
      proxy.cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
