// Pages of events and statements, and downloads, with the TypeScript client.
import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { createClient, DownloadError, type RefusedError } from "../../clients/typescript/src/index.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { postOk } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { secretOf } from "../support/tenants.ts";
import { newRequestId, startService } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";
import { accessKey, fail, refusal, secret, startScripted, type Script } from "./scripted-service.ts";

t.test("Pages reach the end of the list, and files have the announced bytes", async (t) => {
  const service = await startService(t);
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  const a = service.as("ak_a");
  const { codes, couponIds } = await service.makeBatch(a, "tpl_fixed", 5);
  for (const coupon of codes)
    await postOk(a, "/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant: "mch_a" });
  await books.close();
  for (const days of [1, 2]) {
    await setZone(service, "pty_a", zoneOf(offset + days * daySeconds));
    await books.close();
  }
  const client = createClient<"A">({ url: service.url, accessKey: "ak_a", secret: secretOf("ak_a") });
  t.teardown(() => client.close());

  const pages = await Array.fromAsync(client.eventPages({ limit: 2 }));
  t.strictSame(
    pages.map(({ events }) => events.map(({ coupon_id }) => coupon_id)),
    [couponIds.slice(0, 2), couponIds.slice(2, 4), couponIds.slice(4)],
  );
  const rest = await Array.fromAsync(client.eventPages({ cursor: pages[0]!.next_cursor }));
  t.strictSame(
    rest.map(({ events }) => events.length),
    [3],
  );
  t.strictSame(await Array.fromAsync(client.eventPages({ cursor: rest[0]!.next_cursor })), []);

  const lists = await Array.fromAsync(client.reconciliationPages({ limit: 1 }));
  const [first, second] = lists.map(({ reconciliations }) => reconciliations);
  t.equal(lists.length, 2);
  t.equal(first!.length, 1);
  t.ok(first![0]!.business_date < second![0]!.business_date);
  for (const file of first![0]!.files) {
    const listed = await client.getReconciliation(file);
    const { business_date: date } = first![0]!;
    fits(t, listed, { fileName: `${file.kind}-${date}-pty_a.csv`, bytes: file.bytes, sha256: file.sha256 });
    const content = await text(listed.body);
    t.equal(createHash("sha256").update(content).digest("hex"), file.sha256);
    t.equal(content.split("\r\n").length - 2, file.rows);
    const named = await client.getReconciliation({ date, kind: file.kind, distributor: "pty_a" });
    t.equal(await text(named.body), content, "by date and kind too");
  }
});

const content = "a,b\r\n1,2\r\n";
const sha256 = createHash("sha256").update(content).digest("hex");
const file = { href: "/v1/reconciliations/2026-11-22/detail" };

const sends =
  (headers: Record<string, string>, parts: string[], isCut = false): Script =>
  (response) => {
    response.writeHead(200, { "content-type": "text/csv", ...headers });
    for (const part of parts) response.write(part);
    if (isCut) setTimeout(() => response.destroy(), 20);
    else response.end();
  };

async function download(t: Test, script: Script, listed?: string, timeoutMs = 60_000) {
  const { url, received, sockets } = await startScripted(t, [script]);
  const client = createClient({ url, accessKey, secret, timeoutMs });
  t.teardown(() => client.close());
  const got = await client.getReconciliation({ ...file, ...(listed !== undefined && { sha256: listed }) });
  return { got, received, sockets };
}

t.test("A download fails at its end if a byte is missing, too many or wrong", async (t) => {
  const length = { "content-length": String(content.length) };
  const etag = { etag: `"${sha256}"` };
  const good = await download(t, sends({ ...length, ...etag }, [content]), sha256);
  t.equal(await text(good.got.body), content);
  const broken: [string, Script, RegExp, (string | undefined)?, number?][] = [
    ["cut", sends({ ...length, ...etag }, ["a,b\r\n"], true), /broke off after 5 of 10 bytes/],
    ["a wrong byte", sends({ ...length, ...etag }, [content.replace("2", "3")]), /sha256/],
    ["another file than in the list", sends({ ...length, ...etag }, [content]), /sha256/, "0".repeat(64)],
    [
      "silence",
      (response) => void response.writeHead(200, { ...length, ...etag }).write("a"),
      /broke off after 1/,
      undefined,
      1_000,
    ],
  ];
  for (const [name, script, message, listed, timeoutMs] of broken) {
    const { got } = await download(t, script, listed, timeoutMs);
    await t.rejects(text(got.body), message, name);
    t.ok(got.body.errored instanceof DownloadError, name);
  }
  await t.rejects(download(t, sends(etag, [content])), DownloadError, "no length");
  await t.rejects(download(t, sends(length, [content])), DownloadError, "no hash");
});

t.test("A refused download is repeated or thrown like any call, and its connection is used again", async (t) => {
  const scripts = [refusal(503, "UNAVAILABLE"), refusal(404, "NOT_FOUND", { resource: "reconciliation" })];
  const { url, received, sockets } = await startScripted(t, scripts);
  const client = createClient({ url, accessKey, secret, timeoutMs: 60_000 });
  t.teardown(() => client.close());
  const { name, code, details } = (await fail(client.getReconciliation(file))) as RefusedError;
  t.strictSame(
    { name, code, details },
    { name: "RefusedError", code: "NOT_FOUND", details: { resource: "reconciliation" } },
  );
  t.equal(received.length, 2);
  t.strictSame(sockets, { opened: 1, open: 1 });
});

t.test("The time in which the reader pauses is not time without an answer", async (t) => {
  const sent = Buffer.alloc(4_000_000, "a");
  const hash = createHash("sha256").update(sent).digest("hex");
  const script: Script = (response) => {
    response.writeHead(200, { "content-length": String(sent.length), etag: `"${hash}"` }).end(sent);
  };
  const timeoutMs = 2_000;
  const { got, received } = await download(t, script, undefined, timeoutMs);
  // Longer than the time-out: before the first byte, and in the middle of a file that no buffer holds.
  await sleep(1.2 * timeoutMs);
  let bytes = 0;
  for await (const chunk of got.body as AsyncIterable<Buffer>) {
    if (bytes === 0) await sleep(1.2 * timeoutMs);
    bytes += chunk.length;
  }
  t.equal(bytes, sent.length);
  t.equal(received.length, 1);
});

t.test("A download that nobody reads gives its connection back", async (t) => {
  const endless: Script = (response) => {
    response.writeHead(200, { "content-length": "1000000", etag: `"${sha256}"` }).write("x".repeat(1_000));
  };
  const { got, sockets } = await download(t, endless);
  t.equal(sockets.open, 1);
  got.body.destroy();
  await waitUntil("the connection to end", () => sockets.open === 0, { withinMs: 10_000 });
});
