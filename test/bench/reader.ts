// A consumer of the service, a child process: pulls the feed page by page, or downloads a statement. It signs each
// request when it sends it, because a page's cursor comes with the page before. That is one signature per thousand
// events.
import { createHash, randomBytes } from "node:crypto";
import { request as send, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../support/signing-client.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import { cpuSecondsSince, serveJobs } from "./child-process.ts";

type Service = { url: string; accessKey: string; secret: string };
export type ReaderJob = Service &
  // `pull` ends after `wanted` events.
  ({ kind: "pull"; cursor: string | null; limit: number; wanted: number } | { kind: "download"; target: string });
export type ReaderResult = {
  // Events, or lines of the statement without the header.
  count: number;
  bytes: number;
  seconds: number;
  cpuSeconds: number;
  // The cursor after the last event.
  cursor: string | null;
  // Milliseconds from an event's recorded_at, which precedes its commit, to the page with the event.
  lags: Float64Array;
};
type Page = { events: { event_id: string; recorded_at: string }[]; next_cursor: string };

const pauseMs = 20;
const hungAfterMs = 60_000;

serveJobs<ReaderJob, ReaderResult>(async (job) => async () => {
  const before = process.cpuUsage();
  const since = performance.now();
  const read = job.kind === "pull" ? await pull(job) : await download(job, job.target);
  return {
    cursor: null,
    lags: new Float64Array(),
    ...read,
    seconds: (performance.now() - since) / 1_000,
    cpuSeconds: cpuSecondsSince(before),
  };
});

async function pull({ cursor, limit, wanted, ...service }: Extract<ReaderJob, { kind: "pull" }>) {
  const client = createClient(service);
  const seen = new Set<string>();
  const lags: number[] = [];
  let lastAt = performance.now();
  let [at, count, bytes] = [cursor, 0, 0];
  while (count < wanted) {
    const answer = await client.get(
      `/v1/events?limit=${limit}${at === null ? "" : `&cursor=${encodeURIComponent(at)}`}`,
    );
    if (answer.status !== 200) throw new Error(`answered ${answer.status} ${answer.text}`);
    const page = answer.json as Page;
    const now = Date.now();
    for (const event of page.events) {
      seen.add(event.event_id);
      lags.push(now - Date.parse(event.recorded_at));
    }
    count += page.events.length;
    bytes += answer.text.length;
    at = page.next_cursor;
    if (page.events.length > 0) lastAt = performance.now();
    else if (performance.now() > lastAt + hungAfterMs) throw new Error(`${count} of ${wanted} events came`);
    else await sleep(pauseMs);
  }
  if (seen.size !== count) throw new Error(`${count - seen.size} events came twice`);
  return { count, bytes, cursor: at, lags: Float64Array.from(lags) };
}

async function download({ url, accessKey, secret }: Service, target: string) {
  const answer = await get(url, target, headersOf(accessKey, secret, target));
  const hash = createHash("sha256");
  let [lines, bytes] = [0, 0];
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
  }
  const etag = answer.headers.etag?.replaceAll('"', "");
  if (answer.statusCode !== 200 || hash.digest("hex") !== etag)
    throw new Error(`answered ${answer.statusCode}, ${bytes} bytes that are not those of ${etag}`);
  return { count: lines - 1, bytes };
}

function get(url: string, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => send({ host, port, path, headers }, resolve).on("error", reject).end());
}

function headersOf(accessKey: string, secret: string, target: string): Record<string, string> {
  const signed = {
    method: "GET",
    target,
    body: Buffer.alloc(0),
    timestamp: String(Math.floor(Date.now() / 1_000)),
    nonce: randomBytes(12).toString("base64url"),
  };
  return {
    "x-svc-access-key": accessKey,
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(secret, signed),
  };
}
