// The load generator, a child process: it signs its requests, sends them over kept-alive connections and checks each
// answer. Closed loop: each connection sends its next request when it has its answer. Open loop (perSecond): each
// request is due at a fixed time, and its latency counts from that time even when no connection is free.
import { newNonce } from "../../clients/typescript/src/signature.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import { openConnection, type Connection } from "./connection.ts";
import { cpuSecondsSince, serveJobs } from "./child-process.ts";
import { openPacer, sharedNow, type Pacer } from "./pacer.ts";

// expected: how the body of the answer begins.
export type Request = { method: "POST" | "GET"; target: string; body: string; expected: string };
export type LoadJob = {
  url: string;
  accessKey: string;
  secret: string;
  connections: number;
  // No chain starts after this time; running chains are completed.
  seconds: number;
  perSecond?: number;
  // The requests of a chain are sent one after the other on one connection, such as a lock and its confirm.
  chains: Request[][];
};
export type LoadResult = {
  // Completed chains: the first ones of those given.
  count: number;
  seconds: number;
  cpuSeconds: number;
  // Milliseconds, one list for each position in the chain.
  latencies: Float64Array[];
};
type SignedRequest = { bytes: Buffer; expected: string };
type Fail = (error: Error) => void;

const hungAfterMs = 10_000;

serveJobs<LoadJob, LoadResult>(async (job) => {
  const chains = job.chains.map((chain) => chain.map((request) => signRequest(job, request)));
  let fail: Fail = () => {};
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => openConnection(job.url, (error) => fail(error))),
  );
  const pacer = job.perSecond === undefined ? null : await openPacer();
  return async () => {
    const timer = setTimeout(
      () => fail(new Error("an answer did not come within 10 s")),
      job.seconds * 1_000 + hungAfterMs,
    );
    try {
      const failed = new Promise<never>((_, reject) => {
        fail = reject;
      });
      return await Promise.race([failed, run(job, chains, connections, pacer, (error) => fail(error))]);
    } finally {
      clearTimeout(timer);
      for (const connection of connections) connection.end();
      await pacer?.end();
    }
  };
});

// A wrong answer fails the whole job.
async function run(
  { perSecond, seconds }: LoadJob,
  chains: SignedRequest[][],
  connections: Connection[],
  pacer: Pacer | null,
  fail: Fail,
): Promise<LoadResult> {
  const before = process.cpuUsage();
  const latencies = (chains[0] ?? []).map(() => [] as number[]);
  const startAt = sharedNow();
  const send = (connection: Connection, number: number, dueAt: number) =>
    sendChain(connection, chains[number]!, dueAt, latencies, fail);

  const count =
    perSecond === undefined
      ? await runClosedLoop(connections, chains.length, startAt + seconds * 1_000, send)
      : await runOpenLoop(
          connections,
          { startAt, everyMs: 1_000 / perSecond, count: Math.min(chains.length, Math.round(seconds * perSecond)) },
          pacer!,
          send,
        );
  return {
    count,
    seconds: (sharedNow() - startAt) / 1_000,
    cpuSeconds: cpuSecondsSince(before),
    latencies: latencies.map((list) => Float64Array.from(list)),
  };
}

type Send = (connection: Connection, number: number, dueAt: number) => Promise<void>;

// dueAt: the time from which the latency of the first request counts.
function sendChain(
  connection: Connection,
  chain: SignedRequest[],
  dueAt: number,
  latencies: number[][],
  fail: Fail,
): Promise<void> {
  return new Promise((resolve) => {
    const sendStep = (step: number, since: number): void => {
      const { bytes, expected } = chain[step]!;
      connection.send(bytes, expected, ({ status, isExpected, text }) => {
        const now = sharedNow();
        if (status !== 200 || !isExpected) return fail(new Error(`answered ${status} ${text()}`));
        latencies[step]!.push(now - since);
        if (step + 1 < chain.length) sendStep(step + 1, now);
        else resolve();
      });
    };
    sendStep(0, dueAt);
  });
}

// Returns how many chains were sent.
async function runClosedLoop(connections: Connection[], most: number, endAt: number, send: Send): Promise<number> {
  let begun = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (begun < most && sharedNow() < endAt) await send(connection, begun++, sharedNow());
    }),
  );
  return begun;
}

// Each tick sends what is due. Without a free connection, a request goes out as soon as an answer frees one.
async function runOpenLoop(
  connections: Connection[],
  pace: { startAt: number; everyMs: number; count: number },
  pacer: Pacer,
  send: Send,
): Promise<number> {
  const { startAt, everyMs, count } = pace;
  const idle = [...connections];
  const ended = Promise.withResolvers<void>();
  let begun = 0;
  const sendDue = (): void => {
    while (begun < count && idle.length > 0 && startAt + begun * everyMs <= sharedNow()) void use(idle.pop()!, begun++);
    if (begun === count && idle.length === connections.length) ended.resolve();
  };
  const use = async (connection: Connection, number: number): Promise<void> => {
    await send(connection, number, startAt + number * everyMs);
    idle.push(connection);
    sendDue();
  };
  pacer.start(pace, sendDue);
  sendDue();
  await ended.promise;
  return begun;
}

function signRequest({ url, accessKey, secret }: LoadJob, { method, target, body, expected }: Request): SignedRequest {
  const bytes = Buffer.from(body);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const nonce = newNonce();
  const signature = sign(secret, { method, target, timestamp, nonce, body: bytes });
  const content = method === "POST" ? `content-type: application/json\r\ncontent-length: ${bytes.length}\r\n` : "";
  const head =
    `${method} ${target} HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${content}x-svc-access-key: ${accessKey}\r\n` +
    `x-svc-timestamp: ${timestamp}\r\nx-svc-nonce: ${nonce}\r\nx-svc-signature: ${signature}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(head), bytes]), expected };
}
