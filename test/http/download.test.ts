// How a file goes out: page by page as the caller reads, whole or visibly cut, and never held in memory.
//
// LONG=1 npm test -- --timeout=1800 test/http/download.test.ts   makes the large one a million lines.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { request as send, type IncomingMessage } from "node:http";
import t, { type Test } from "tap";
import type { StatementFile } from "../../src/gate/gate.ts";
import { sign } from "../../src/crypto/request-signature.ts";
import { linesPerPage, measureFile, type Line, type Measure } from "../../src/common/statement-csv.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { redeemWhole } from "../support/ledger.ts";
import { exitCodeOf, startProgram } from "../support/program.ts";
import { secretOf } from "../support/provisioning.ts";
import { startService, type Running } from "../support/service.ts";
import { secret, startStub, type Stub } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const target = "/v1/reconciliations/2026-01-31/detail";
const lineOf = (number: number): Line => ({
  number,
  fields: Array.from({ length: 17 }, (_, field) => {
    if (field === 0) return "2026-01-31";
    // Ids of rows.
    if (field === 1 || (field >= 3 && field <= 5)) return `01890a5d-ac96-774b-bcce-${String(number).padStart(12, "0")}`;
    // Times.
    if (field >= 15) return String(1_767_225_600_000_000 + number);
    return `field ${field} of ${number}`;
  }),
});
const pageOf = (rows: number) => async (after: number, limit: number) =>
  Array.from({ length: Math.max(0, Math.min(limit, rows - after)) }, (_, index) => lineOf(after + 1 + index));

type Page = (after: number, limit: number, deadline: number) => Promise<Line[]>;

// A file of so many lines as the database would describe it; `page` stands in for its pages.
async function stubFile(
  t: Test,
  rows: number,
  page: Page,
  measure?: Measure,
): Promise<Stub & { pages: number[]; deadlines: number[] }> {
  const measured = measure ?? (await measureFile("detail", pageOf(rows)));
  const file: StatementFile = {
    tenant_id: 7,
    distributor_id: 1,
    business_date: "2026-01-31",
    kind: "detail",
    ...measured,
  };
  const [pages, deadlines]: [number[], number[]] = [[], []];
  const stub = await startStub(t, {
    perform: async () => ({ status: 200, code: null, resource: null, body: JSON.stringify(file), isReplay: false }),
    async statementPage(_, after, limit, deadline) {
      pages.push(after);
      deadlines.push(deadline - performance.now());
      return page(after, limit, deadline);
    },
  });
  return { ...stub, pages, deadlines };
}

// The answer as it begins; its body is left to the test.
function open(url: string, accessKey: string, key: string, path = target): Promise<IncomingMessage> {
  const signed = {
    method: "GET",
    target: path,
    body: Buffer.alloc(0),
    timestamp: String(Math.floor(Date.now() / 1000)),
    nonce: createHash("md5").update(String(Math.random())).digest("hex"),
  };
  const { hostname, port } = new URL(url);
  const headers = {
    "x-svc-access-key": accessKey,
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(key, signed),
  };
  return new Promise((resolve, reject) =>
    send({ host: hostname, port, path, headers }, resolve).on("error", reject).end(),
  );
}

// What came before the connection was cut; null when it was not.
async function readCut(response: IncomingMessage): Promise<number | null> {
  let bytes = 0;
  try {
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    return null;
  } catch {
    return bytes;
  }
}

t.test("a caller that does not read is not read for, and one that goes away ends the reading", async (t) => {
  const stub = await stubFile(t, 500_000, pageOf(500_000), { rows: 500_000, bytes: 1e9, sha256: "never seen" });
  const response = await open(stub.url, "ak_a", secret);
  await once(response, "readable");
  let seen = -1;
  await waitUntil("full buffers", async () => {
    const isStill = seen === stub.pages.length;
    seen = stub.pages.length;
    if (!isStill) await new Promise((resolve) => setTimeout(resolve, 200));
    return isStill;
  });
  t.ok(seen < 240, `${seen} of 2000 pages fill the buffers between us`);
  response.destroy();
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.ok(stub.pages.length <= seen + 1, "one page was under way at most");
  t.strictSame(
    stub.log.filter(({ level }) => level === 50),
    [],
    "which is no error",
  );
});

t.test("each page has the whole deadline to itself", async (t) => {
  const rows = 2.5 * linesPerPage;
  const stub = await stubFile(t, rows, async (after, limit) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return pageOf(rows)(after, limit);
  });
  const { status, text } = await stub.asA.get(target);
  t.strictSame([status, text.split("\r\n").length], [200, rows + 2]);
  t.strictSame(
    stub.pages,
    Array.from({ length: 3 }, (_, page) => page * linesPerPage),
  );
  for (const ms of stub.deadlines) t.ok(ms > 3_200 && ms <= 3_500, `${ms} ms`);
});

t.test("without its first page the answer is an error, not an empty file", async (t) => {
  const stub = await stubFile(t, 10, async () => {
    throw new Error("no such page");
  });
  t.match(await stub.asA.get(target), {
    status: 500,
    json: { code: "INTERNAL_ERROR" },
    headers: { "content-type": /json/, etag: undefined },
  });
});

t.test("an error after that cuts the connection short of content-length, and harms nobody else", async (t) => {
  const stub = await stubFile(t, 5_000, async (after, limit) => {
    if (after === 3_000) throw new Error("gone");
    return pageOf(5_000)(after, limit);
  });
  const response = await open(stub.url, "ak_a", secret);
  const bytes = await readCut(response);
  t.ok(
    bytes !== null && bytes < Number(response.headers["content-length"]),
    `${bytes} of ${response.headers["content-length"]}`,
  );
  t.match(
    stub.log.filter(({ level }) => level === 50),
    [{ msg: "download cut short", err: { message: "gone" }, request_id: response.headers["x-request-id"] }],
  );
  t.equal((await stub.asA.get("/v1/events")).status, 200);
});

t.test("a file that is not the one that was closed is never given whole", async (t) => {
  const spoiled: Record<string, Page> = {
    "other text": async (after, limit) =>
      (await pageOf(2_510)(after, limit)).map((line) => ({
        ...line,
        fields: line.fields.with(9, line.fields[9]!.replace("f", "g")),
      })),
    "a line more": (after, limit) => pageOf(2_511)(after, limit),
    "a line less": (after, limit) => pageOf(2_509)(after, limit),
    "a page more": (after, limit) => pageOf(4_000)(after, limit),
  };
  for (const [what, page] of Object.entries(spoiled)) {
    const stub = await stubFile(t, 2_510, page);
    t.not(await readCut(await open(stub.url, "ak_a", secret)), null, what);
    t.match(
      stub.log.filter(({ level }) => level === 50),
      [{ msg: "download cut short" }],
    );
  }
});

// Resident memory in MiB, now and at its highest.
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
  const [line] = (await once(program.stdout, "data")) as [Buffer];
  program.stdout.resume();
  return { url: JSON.parse(String(line)).url, pid: program.pid! };
}

const lines = process.env["LONG"] === undefined ? 20_000 : 1_000_000;
const noProc = !existsSync("/proc/self/status") && "there is no /proc here";

t.test(
  `a file of ${lines} lines: closed, downloaded, the same bytes, within 64 MiB`,
  { skip: noProc, timeout: 1_800_000 },
  async (t) => {
    const service = await startService(t);
    const offset = noonOffset();
    await setZone(service, "pty_a", zoneOf(offset));
    const books = await keepBusinessDays(t, service);
    const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", Math.round(lines / 1.1));
    const entries = await redeemWhole(service, id, "mch_a");
    t.equal(entries, lines);
    const took = stopwatch();
    await books.sequence();
    const sequenced = took();
    await setZone(service, "pty_a", zoneOf(offset + daySeconds));
    // What is settled is 5 s old; here nothing is under way.
    await books.closer.closeDays();
    const closed = took();
    await books.closer.finishStatements();
    const finished = took();

    const [{ files }] = (await service.as("ak_a").get("/v1/reconciliations")).json.reconciliations;
    const [file] = files;
    t.equal(file.rows, lines);
    const { url, pid } = await startServe(t, service);
    // What the process needs anyway is there before: code, connections, one small answer.
    for (let warm = 0; warm < 20; warm += 1)
      await (await open(url, "ak_a", secretOf("ak_a"), files[1].href)).resume().toArray();
    const before = memoryOf(pid).now;
    const hash = createHash("sha256");
    let [bytes, newlines] = [0, 0];
    took();
    for await (const chunk of await open(url, "ak_a", secretOf("ak_a"), file.href)) {
      hash.update(chunk);
      bytes += (chunk as Buffer).length;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) newlines += 1;
    }
    const downloaded = took();
    const { peak } = memoryOf(pid);
    t.strictSame([bytes, hash.digest("hex"), newlines], [file.bytes, file.sha256, lines + 1]);
    t.ok(peak - before <= 64, `resident memory from ${before.toFixed(0)} to ${peak.toFixed(0)} MiB at its highest`);
    t.comment(
      `${bytes} bytes, memory ${before.toFixed(1)} -> ${peak.toFixed(1)} MiB; sequence ${sequenced}, close ${closed}, finish ${finished}, download ${downloaded} ms`,
    );
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
