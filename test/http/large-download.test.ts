// A large file: the service sends it without keeping it in memory.
//
// LONG=1 npm test -- --timeout=1800 test/http/large-download.test.ts   makes it a million lines.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { redeemWhole } from "../support/ledger.ts";
import { openDownload } from "../support/open-download.ts";
import { exitCodeOf, startProgram } from "../support/program.ts";
import { secretOf } from "../support/tenants.ts";
import { startService, type Running } from "../support/service.ts";
import { waitFor } from "../support/wait-until.ts";

// Resident memory in MiB, now and at its peak.
function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)![1]) / 1024;
  return { now: read("VmRSS"), peak: read("VmHWM") };
}

async function startServe(t: Test, service: Running): Promise<{ url: string; pid: number }> {
  const program = startProgram(service, "serve");
  t.teardown(async () => {
    program.kill("SIGKILL");
    await exitCodeOf(program);
  });
  program.stderr.resume();
  const [line] = (await waitFor("the first line", once(program.stdout, "data"))) as [Buffer];
  program.stdout.resume();
  return { url: JSON.parse(String(line)).url, pid: program.pid! };
}

const lines = process.env["LONG"] === undefined ? 20_000 : 1_000_000;
const noProc = !existsSync("/proc/self/status") && "this system has no /proc";

// Closes a business day with this many entries. The times of the steps are in milliseconds.
async function closeLargeDay(t: Test, service: Running) {
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", Math.round(lines / 1.1));
  t.equal(await redeemWhole(service, id, "mch_a"), lines);
  const took = stopwatch();
  await books.sequence();
  const sequence = took();
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  // Nothing is in progress, so there is no need to wait until entries are 5 s old.
  await books.closer.closeDays();
  const close = took();
  await books.closer.finishStatements();
  return { books, times: { sequence, close, finish: took() } };
}

// Hashes the body as it arrives, without keeping it.
async function consume(response: AsyncIterable<Buffer>) {
  const hash = createHash("sha256");
  let [bytes, newlines] = [0, 0];
  for await (const chunk of response) {
    hash.update(chunk);
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) newlines += 1;
  }
  return { bytes, sha256: hash.digest("hex"), newlines };
}

t.test(
  `A file of ${lines} lines is downloaded unchanged, with at most 64 MiB more memory`,
  { skip: noProc, timeout: 1_800_000 },
  async (t) => {
    const service = await startService(t);
    const { books, times } = await closeLargeDay(t, service);
    const [{ files }] = (await service.as("ak_a").get("/v1/reconciliations")).json.reconciliations;
    const [file, summary] = files;
    t.equal(file.rows, lines);
    const { url, pid } = await startServe(t, service);
    const download = (path: string) => openDownload({ url, path, accessKey: "ak_a", secret: secretOf("ak_a") });
    // Small answers first, so that code and connections are loaded before memory is measured.
    for (let warm = 0; warm < 20; warm += 1) await (await download(summary.href)).resume().toArray();
    const before = memoryOf(pid).now;
    const took = stopwatch();
    t.strictSame(await consume(await download(file.href)), {
      bytes: file.bytes,
      sha256: file.sha256,
      newlines: lines + 1,
    });
    const downloaded = took();
    const { peak } = memoryOf(pid);
    const memory = `resident memory from ${before.toFixed(1)} to ${peak.toFixed(1)} MiB at its peak`;
    t.ok(peak - before <= 64, memory);
    t.comment(`${file.bytes} bytes, ${memory}; ms: ${JSON.stringify({ ...times, download: downloaded })}`);
    t.strictSame(books.errors, []);
  },
);

function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const took = performance.now() - last;
    last += took;
    return Math.round(took);
  };
}
