// HEAD works where GET does: the same status and headers, without the body.
import t, { type Test } from "tap";
import { measureFile, type Line } from "../../src/formats/statement-csv.ts";
import type { StatementFile } from "../../src/gate/gate.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import { fits } from "../support/fits.ts";
import { secret, startStub } from "../support/stub.ts";

// Headers that differ from answer to answer.
const changing = ["date", "x-request-id"];

function isHeadOf(t: Test, head: Reply, get: Reply, what: string): void {
  const fixed = ({ headers }: Reply) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !changing.includes(name)));
  t.equal(head.status, get.status, what);
  t.strictSame(fixed(head), fixed(get), what);
  t.equal(head.text, "", what);
  t.equal(head.headers["content-length"], String(Buffer.byteLength(get.text)), what);
}

t.test("HEAD answers as GET does, whatever the status", async (t) => {
  const { url, asA, calls } = await startStub(t, {}, { requestsPerSecond: 1_000, requestBurst: 1_000 });
  const targets = [
    "/v1/batches/bat_1",
    "/v1/requests/r-1",
    "/v1/events?limit=5",
    "/v1/reconciliations",
    "http://any.example/v1/events",
    "/v1/events?limit=none",
    "/v1/nothing",
  ];
  for (const target of targets) {
    const [get, head] = [await asA.get(target), await asA.head(target)];
    for (const { headers } of [get, head]) delete headers["ratelimit"];
    isHeadOf(t, head, get, target);
  }
  t.equal(calls.length, 10, "both are calls");
  for (const path of ["/healthz", "/readyz", "/v1/batches/bat_1"])
    isHeadOf(t, await sendPlain(url, "HEAD", path), await sendPlain(url, "GET", path), `${path}, unsigned`);
});

t.test("A HEAD is signed as HEAD, and needs a nonce like every request", async (t) => {
  const { asA } = await startStub(t);
  const nonce = "0123456789abcdef";
  t.equal((await asA.head("/v1/events", { nonce })).status, 200);
  t.equal((await asA.head("/v1/events", { nonce })).status, 401);
  const signed = { method: "GET", target: "/v1/events", body: Buffer.alloc(0), nonce: "another-nonce-of-a-get" };
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = sign(secret, { ...signed, timestamp });
  const headers = { "x-svc-signature": signature };
  const options = { nonce: signed.nonce, timestamp, headers };
  t.equal((await asA.head("/v1/events", options)).status, 401, "the signature of a GET");
  t.equal((await asA.get("/v1/events", options)).status, 200);
});

t.test("HEAD of a download has the file's length and hash, and reads no line of it", async (t) => {
  const line: Line = { number: 1, fields: Array.from({ length: 17 }, () => "") };
  const measured = await measureFile("detail", async (after) => (after === 0 ? [line] : []));
  const file: StatementFile = {
    tenant_id: 7,
    distributor_id: 1,
    distributor: "pty_1",
    business_date: "2026-01-31",
    kind: "detail",
    ...measured,
  };
  let pages = 0;
  const { asA } = await startStub(t, {
    perform: async () => ({ status: 200, code: null, resource: null, body: JSON.stringify(file), isReplay: false }),
    async statementPage(_, after) {
      pages += 1;
      return after === 0 ? [line] : [];
    },
  });
  const target = "/v1/reconciliations/2026-01-31/detail";
  const head = await asA.head(target);
  t.equal(pages, 0);
  const get = await asA.get(target);
  isHeadOf(t, head, get, target);
  fits(t, head.headers, { etag: `"${measured.sha256}"`, "content-disposition": /detail-2026-01-31/ });
  const unchanged = await asA.head(target, { headers: { "if-none-match": `"${measured.sha256}"` } });
  t.strictSame([unchanged.status, unchanged.text], [304, ""]);
});
