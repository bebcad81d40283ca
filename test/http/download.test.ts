// How a file is sent: page by page as the caller reads, and either whole or visibly cut.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import t, { type Test } from "tap";
import { linesPerPage, measureFile, type Line, type Measure } from "../../src/formats/statement-csv.ts";
import type { StatementFile } from "../../src/gate/gate.ts";
import { fits } from "../support/fits.ts";
import { openDownload } from "../support/client.ts";
import { stopClock } from "../support/stop-clock.ts";
import { done, emptyFeed, secret, startStub, type Stub } from "../support/stub.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const target = "/v1/reconciliations/2026-01-31/detail";
const lineOf = (number: number): Line => ({
  number,
  fields: Array.from({ length: 18 }, (_, field) => {
    if (field === 0) return "2026-01-31";
    // IDs of rows.
    if (field === 1 || (field >= 3 && field <= 5)) return `01890a5d-ac96-774b-bcce-${String(number).padStart(12, "0")}`;
    // Times.
    if (field === 15 || field === 16) return String(1_767_225_600_000_000 + number);
    return `field ${field} of ${number}`;
  }),
});
const pageOf = (rows: number) => async (after: number, limit: number) =>
  Array.from({ length: Math.max(0, Math.min(limit, rows - after)) }, (_, index) => lineOf(after + 1 + index));

type Page = (after: number, limit: number) => Promise<Line[]>;

// Serves a file with this many lines, as the database describes it. `page` returns its pages.
async function stubFile(t: Test, rows: number, page: Page = pageOf(rows), measure?: Measure) {
  const file: StatementFile = {
    tenant_id: 7,
    distributor_id: 1,
    distributor: "pty_a",
    business_date: "2026-01-31",
    kind: "detail",
    ...(measure ?? (await measureFile("detail", pageOf(rows)))),
  };
  const pages: { after: number; deadline: number; leftMs: number }[] = [];
  const callDeadlines: number[] = [];
  const stub = await startStub(t, {
    async perform(_, { operation }, deadline) {
      callDeadlines.push(deadline);
      return operation === "pull_events" ? emptyFeed : { ...done, body: JSON.stringify(file) };
    },
    async statementPage(_, after, limit, deadline) {
      pages.push({ after, deadline, leftMs: deadline - performance.now() });
      return page(after, limit);
    },
  });
  return { ...stub, file, pages, callDeadlines };
}

const open = ({ url }: Stub) => openDownload({ url, path: target, accessKey: "ak_a", secret });
const errorsOf = ({ log }: Stub) => log.filter(({ level }) => level === 50);

// The number of bytes before the connection was cut, or null if it was not cut.
async function readCut(response: IncomingMessage): Promise<number | null> {
  let bytes = 0;
  try {
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    return null;
  } catch {
    return bytes;
  }
}

t.test("The service reads no further than the caller does, and stops when the caller leaves", async (t) => {
  const stub = await stubFile(t, 500_000, undefined, { rows: 500_000, bytes: 1e9, sha256: "never seen" });
  const response = await open(stub);
  await waitFor("the first bytes", once(response, "readable"));
  let [seen, stillFor] = [0, 0];
  const isStill = () => {
    stillFor = seen === stub.pages.length ? stillFor + 1 : 0;
    seen = stub.pages.length;
    // Looked at again and again: the process may stall between two looks.
    return seen > 0 && stillFor === 20;
  };
  await waitUntil("full buffers", isStill, { everyMs: 10 });
  t.ok(seen < 240, `${seen} of 1000 pages fill the buffers on the way`);
  response.destroy();
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.ok(stub.pages.length <= seen + 1, "at most one page was being read");
  t.strictSame(errorsOf(stub), []);
});

t.test("Each page has the whole deadline, and the first one shares it with the call", async (t) => {
  const rows = 2.5 * linesPerPage;
  const clock = stopClock(t);
  const stub = await stubFile(t, rows, async (after, limit) => {
    clock.pass(300);
    return pageOf(rows)(after, limit);
  });
  const { status, text } = await stub.asA.get(target);
  t.strictSame([status, text.split("\r\n").length], [200, rows + 2]);
  t.strictSame(
    stub.pages.map(({ after, leftMs }) => [after, leftMs]),
    [0, 1, 2].map((page) => [page * linesPerPage, 3_500]),
  );
  t.strictSame([stub.pages[0]!.deadline], stub.callDeadlines);
});

t.test("HEAD of a download has the file's length and hash, and reads no line of it", async (t) => {
  const { asA, file, pages } = await stubFile(t, 10);
  const { status, text, headers } = await asA.head(target);
  t.strictSame([status, text, pages], [200, "", []]);
  fits(t, headers, {
    "content-length": String(file.bytes),
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": /detail-2026-01-31/,
    etag: `"${file.sha256}"`,
  });
  const unchanged = await asA.head(target, { headers: { "if-none-match": `"${file.sha256}"` } });
  t.strictSame([unchanged.status, unchanged.text], [304, ""]);
});

t.test("If the first page fails, the answer is an error, not an empty file", async (t) => {
  const stub = await stubFile(t, 10, async () => {
    throw new Error("no such page");
  });
  fits(t, await stub.asA.get(target), {
    status: 500,
    json: { code: "INTERNAL_ERROR" },
    headers: { "content-type": /json/, "cache-control": "no-store", etag: undefined },
  });
});

t.test("An error after the first page cuts the connection, and no other request fails", async (t) => {
  const stub = await stubFile(t, 5_000, async (after, limit) => {
    if (after === 3_000) throw new Error("gone");
    return pageOf(5_000)(after, limit);
  });
  const response = await open(stub);
  const bytes = await readCut(response);
  const length = response.headers["content-length"];
  t.ok(bytes !== null && bytes < Number(length), `${bytes} of ${length}`);
  const request_id = response.headers["x-request-id"] as string;
  fits(t, errorsOf(stub), [{ msg: "download cut short", err: { message: "gone" }, request_id }]);
  t.equal((await stub.asA.get("/v1/events")).status, 200);
});

t.test("A file that differs from the closed one is never sent whole", async (t) => {
  const spoiled: Record<string, Page> = {
    "other text": async (after, limit) =>
      (await pageOf(2_510)(after, limit)).map((line) => ({
        ...line,
        fields: line.fields.with(9, line.fields[9]!.replace("f", "g")),
      })),
    "one line more": pageOf(2_511),
    "one line less": pageOf(2_509),
    "one page more": pageOf(4_000),
  };
  for (const [what, page] of Object.entries(spoiled)) {
    const stub = await stubFile(t, 2_510, page);
    t.not(await readCut(await open(stub)), null, what);
    fits(t, errorsOf(stub), [{ msg: "download cut short" }]);
  }
});
