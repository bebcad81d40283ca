// The load generator, a process of its own: signs its requests, then sends them over kept-alive connections and checks
// each answer. Closed loop: each connection sends its next request when it has its answer. Open loop (perSecond): requests
// are sent when their time has come, and their latency counts from that time, whether or not a connection was free.
import { randomBytes } from "node:crypto";
import { sign } from "../../src/crypto/request-signature.ts";
import { openConnection, type Connection, type Taken } from "./connection.ts";
import { cpuSecondsSince, serveJobs } from "./child-process.ts";
import { openPacer, sharedNow } from "./pacer.ts";

// expected: how the body of the answer begins.
export type Ask = { method: "POST" | "GET"; target: string; body: string; expected: string };
export type LoadJob = {
  url: string;
  accessKey: string;
  secret: string;
  connections: number;
  // Nothing is begun after this; what is under way is waited for.
  seconds: number;
  perSecond?: number;
  // Each is sent one after the other on one connection: a lock and its confirm.
  chains: Ask[][];
};
export type LoadResult = {
  // Chains that were sent and answered: the first ones of those given.
  count: number;
  seconds: number;
  cpuSeconds: number;
  // Milliseconds by place in the chain.
  latencies: Float64Array[];
};
type Shot = { bytes: Buffer; expected: string };

const hungAfterMs = 10_000;

serveJobs<LoadJob, LoadResult>(async (job) => {
  const chains = job.chains.map((chain) => chain.map((ask) => prepareShot(job, ask)));
  let failAll: (error: Error) => void = () => {};
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => openConnection(job.url, (error) => failAll(error))),
  );
  const pacer = job.perSecond === undefined ? null : await openPacer();
  return async () => {
    const timer = setTimeout(
      () => failAll(new Error("an answer did not come within 10 s")),
      job.seconds * 1_000 + hungAfterMs,
    );
    try {
      const failed = new Promise<never>((_, reject) => {
        failAll = reject;
      });
      return await Promise.race([failed, run(job, chains, connections)]);
    } finally {
      clearTimeout(timer);
      for (const connection of connections) connection.end();
      await pacer?.end();
    }
  };

  async function run({ perSecond, seconds }: LoadJob, shots: Shot[][], free: Connection[]): Promise<LoadResult> {
    const before = process.cpuUsage();
    const latencies = (shots[0] ?? []).map(() => [] as number[]);
    const startAt = sharedNow();
    const endAt = startAt + seconds * 1_000;
    let begun = 0;

    // dueAt: since when the first of the chain is waited for. A wrong answer ends the whole job.
    const sendChain = (connection: Connection, chain: Shot[], dueAt: number) =>
      new Promise<void>((resolve) => {
        const sendStep = (step: number, since: number): void => {
          const { bytes, expected } = chain[step]!;
          connection.send(bytes, expected, (taken) => {
            const now = sharedNow();
            if (!isGood(taken)) return failAll(new Error(`answered ${taken.status} ${taken.text()}`));
            latencies[step]!.push(now - since);
            if (step + 1 < chain.length) sendStep(step + 1, now);
            else resolve();
          });
        };
        sendStep(0, dueAt);
      });

    async function closedLoop(connection: Connection): Promise<void> {
      while (begun < shots.length && sharedNow() < endAt) await sendChain(connection, shots[begun++]!, sharedNow());
    }

    // Each tick sends what is due; without a free connection it goes with the next answer.
    async function openLoop(perSecond: number): Promise<void> {
      const everyMs = 1_000 / perSecond;
      const count = Math.min(shots.length, Math.round(seconds * perSecond));
      const idle = [...free];
      const ended = Promise.withResolvers<void>();
      const sendDue = (): void => {
        while (begun < count && idle.length > 0 && startAt + begun * everyMs <= sharedNow())
          void give(idle.pop()!, begun++);
        if (begun === count && idle.length === free.length) ended.resolve();
      };
      const give = async (connection: Connection, number: number): Promise<void> => {
        await sendChain(connection, shots[number]!, startAt + number * everyMs);
        idle.push(connection);
        sendDue();
      };
      pacer!.start({ startAt, everyMs, count }, sendDue);
      sendDue();
      await ended.promise;
    }

    if (perSecond === undefined) await Promise.all(free.map(closedLoop));
    else await openLoop(perSecond);
    return {
      count: begun,
      seconds: (sharedNow() - startAt) / 1_000,
      cpuSeconds: cpuSecondsSince(before),
      latencies: latencies.map((list) => Float64Array.from(list)),
    };
  }
});

const isGood = ({ status, isExpected }: Taken): boolean => status === 200 && isExpected;

function prepareShot({ url, accessKey, secret }: LoadJob, { method, target, body, expected }: Ask): Shot {
  const bytes = Buffer.from(body);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const nonce = randomBytes(12).toString("base64url");
  const signature = sign(secret, { method, target, timestamp, nonce, body: bytes });
  const content = method === "POST" ? `content-type: application/json\r\ncontent-length: ${bytes.length}\r\n` : "";
  const head =
    `${method} ${target} HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${content}x-svc-access-key: ${accessKey}\r\n` +
    `x-svc-timestamp: ${timestamp}\r\nx-svc-nonce: ${nonce}\r\nx-svc-signature: ${signature}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(head), bytes]), expected };
}
