// The receivers of webhooks, a child process with one server per secret. They accept every delivery and verify its
// signature with the reference library of Standard Webhooks.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { listenOnLoopback } from "../support/listen.ts";
import { cpuSecondsSince, serveJobs } from "./child-process.ts";

export type ReceiversJob = { kind: "listen"; secrets: string[] } | { kind: "receive"; wanted: number };
// ports: one per secret. count, seconds and repeats are about coupon.redeemed: deliveries, seconds from the first to
// the last one, and repeated deliveries.
export type ReceiversResult = { ports: number[]; count: number; seconds: number; repeats: number; cpuSeconds: number };

const hungAfterMs = 60_000;
const seen = new Set<string>();
let [firstAt, lastAt, repeats] = [0, 0, 0];
let failure: Error | null = null;

serveJobs<ReceiversJob, ReceiversResult>(async (job) => async () => {
  const before = process.cpuUsage();
  if (job.kind === "listen")
    return { ports: await Promise.all(job.secrets.map(listen)), count: 0, seconds: 0, repeats: 0, cpuSeconds: 0 };
  for (const since = performance.now(); seen.size < job.wanted;) {
    if (failure !== null) throw failure;
    if (performance.now() > Math.max(since, lastAt) + hungAfterMs)
      throw new Error(`${seen.size} of ${job.wanted} deliveries came`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    ports: [],
    count: seen.size,
    seconds: (lastAt - firstAt) / 1_000,
    repeats,
    cpuSeconds: cpuSecondsSince(before),
  };
});

async function listen(secret: string): Promise<number> {
  const webhook = new Webhook(secret);
  const server = createServer(async (request, response) => {
    try {
      const body = await text(request);
      const { event_type, event_id } = webhook.verify(body, request.headers as Record<string, string>) as {
        event_type: string;
        event_id: string;
      };
      if (event_type === "coupon.redeemed") take(event_id);
      response.writeHead(204).end();
    } catch (error) {
      failure = error as Error;
      response.destroy();
    }
  });
  return listenOnLoopback(server);
}

function take(eventId: string): void {
  if (seen.has(eventId)) repeats += 1;
  seen.add(eventId);
  lastAt = performance.now();
  if (firstAt === 0) firstAt = lastAt;
}
