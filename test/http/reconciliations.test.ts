// The list of closed business days and the download of their files, as a distributor's finance team meets them.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import t from "tap";
import { columns } from "../../src/common/statement-csv.ts";
import {
  daySeconds,
  keepBusinessDays,
  manyDistributors,
  noonOffset,
  setZone,
  zoneOf,
} from "../support/business-days.ts";
import type { Client } from "../support/client.ts";
import { parseCsv, readCsv } from "../support/csv.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { tenants } from "../support/provisioning.ts";
import { newRequestId, startService } from "../support/service.ts";

const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "reconciliation" } } };

async function must(by: Client, path: string, body: Record<string, unknown>): Promise<any> {
  const answer = await by.post(path, { request_id: newRequestId(), ...body });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
  return answer.json;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const dateAt = (offset: number) => new Date(Date.now() + offset * 1000).toISOString().slice(0, 10);

// What people and tills write; the last of each row is what a spreadsheet may be shown.
const places: [text: string, shown: string][] = [
  ["plain", "plain"],
  ['say "hi", twice', 'say "hi", twice'],
  ["two\r\nlines", "two\r\nlines"],
  ["a lone\rreturn", "a lone\rreturn"],
  ["a lone\nfeed", "a lone\nfeed"],
  ["ünïcode 店 🏪", "ünïcode 店 🏪"],
  ["NULL", "NULL"],
  ["{a,b}\\", "{a,b}\\"],
  ["'quoted'", "'quoted'"],
  ['=HYPERLINK("http://x","y")', `'=HYPERLINK("http://x","y")`],
  ["+49 30 1234", "'+49 30 1234"],
  ["-5", "'-5"],
  ["@SUM(A1:A9)", "'@SUM(A1:A9)"],
  ["\u200b=1+1", "'\u200b=1+1"],
  ["＝1+1", "'＝1+1"],
  ["5-3=2", "5-3=2"],
];

t.test("a finished day is listed, its files are what the list says, and read back field by field", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  const { codes, couponIds, id: batch } = await service.makeBatch(a, "tpl_fixed", places.length + 1);
  const redemptions: string[] = [];
  for (const [index, [text]] of places.entries()) {
    const order = {
      merchant: "mch_a",
      store: text,
      terminal: `${text} `,
      ...(!/[\r\n\u200b]/.test(text) && { order_id: text }),
      order_amount: 100 + index,
    };
    redemptions.push((await must(a, "/v1/coupons/redeem", { coupon: codes[index], ...order })).redemption);
  }
  redemptions.push((await must(a, "/v1/coupons/redeem", { coupon: codes.at(-1), merchant: "mch_a2" })).redemption);
  const { reversal } = await must(a, "/v1/redemptions/reverse", { redemption: redemptions[0] });
  await books.close();
  t.strictSame((await a.get("/v1/reconciliations")).json.reconciliations, [], "nothing of a day that still lasts");
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  await books.close();

  const date = dateAt(offset);
  const list = await a.get("/v1/reconciliations");
  t.match(list, { status: 200, json: { next_cursor: date } });
  t.equal(list.json.reconciliations.length, 1);
  const [entry] = list.json.reconciliations;
  t.match(entry, {
    business_date: date,
    distributor_party_id: "pty_a",
    closed_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  });
  t.strictSame(
    entry.files.map(({ kind, href, rows }: any) => ({ kind, href, rows })),
    [
      { kind: "detail", href: `/v1/reconciliations/${date}/detail`, rows: places.length + 2 },
      { kind: "summary", href: `/v1/reconciliations/${date}/summary`, rows: 2 },
    ],
  );

  const files: Record<string, string> = {};
  for (const { kind, href, bytes, sha256: expected } of entry.files) {
    const file = await a.get(href);
    t.match(file, {
      status: 200,
      headers: {
        "content-type": "text/csv; charset=utf-8",
        "content-length": String(bytes),
        etag: `"${expected}"`,
        "content-disposition": `attachment; filename="${kind}-${date}.csv"`,
        "x-request-id": /^req_/,
      },
    });
    t.strictSame(
      [Buffer.byteLength(file.text), sha256(file.text)],
      [bytes, expected],
      `${kind}: bytes and sha256 of the list`,
    );
    t.equal(parseCsv(file.text)[0]!.join(), columns[kind as "detail"].join());
    t.equal((await a.get(href)).text, file.text, "again, the same bytes");
    for (const tag of [`"${expected}"`, `W/"${expected}"`, `"x", "${expected}"`, "*"]) {
      const unchanged = await a.get(href, { headers: { "if-none-match": tag } });
      t.strictSame(
        [unchanged.status, unchanged.text, unchanged.headers["etag"], unchanged.headers["content-length"]],
        [304, "", `"${expected}"`, undefined],
        tag,
      );
    }
    for (const tag of ['"x"', expected, `"${expected.toUpperCase()}"`])
      t.equal((await a.get(href, { headers: { "if-none-match": tag } })).status, 200, tag);
    files[kind] = file.text;
  }

  const detail = readCsv(files["detail"]!);
  const common = { business_date: date, batch_id: batch, template_id: "tpl_fixed", currency: "EUR" };
  t.strictSame(
    detail.map(({ entry_id: _, occurred_at: __, recorded_at: ___, ...rest }) => rest),
    [
      ...places.map(([text, shown], index) => ({
        ...common,
        entry_type: "REDEMPTION",
        redemption_id: redemptions[index],
        reversal_id: "",
        coupon_id: couponIds[index],
        merchant_id: "mch_a",
        store: shown,
        terminal: shown,
        order_id: /[\r\n\u200b]/.test(text) ? "" : shown,
        order_amount: `${100 + index}.00`,
        discount_amount: "5.00",
      })),
      {
        ...common,
        entry_type: "REDEMPTION",
        redemption_id: redemptions.at(-1),
        reversal_id: "",
        coupon_id: couponIds.at(-1),
        merchant_id: "mch_a2",
        store: "",
        terminal: "",
        order_id: "",
        order_amount: "",
        discount_amount: "5.00",
      },
      {
        ...common,
        entry_type: "REVERSAL",
        redemption_id: redemptions[0],
        reversal_id: reversal,
        coupon_id: couponIds[0],
        merchant_id: "mch_a",
        store: "plain",
        terminal: "plain",
        order_id: "plain",
        order_amount: "100.00",
        discount_amount: "-5.00",
      },
    ],
  );
  for (const { entry_id, occurred_at, recorded_at } of detail)
    t.match([entry_id, occurred_at, recorded_at], [/^led_[0-9a-z]{26}$/, /T.*\.\d{3}Z$/, /T.*\.\d{3}Z$/]);
  const [sum, other] = readCsv(files["summary"]!);
  t.strictSame(sum, {
    business_date: date,
    merchant_id: "mch_a",
    template_id: "tpl_fixed",
    currency: "EUR",
    redemption_count: String(places.length),
    redemption_amount: `${places.length * 5}.00`,
    reversal_count: "1",
    reversal_amount: "-5.00",
    net_amount: `${(places.length - 1) * 5}.00`,
  });
  t.match(other, {
    merchant_id: "mch_a2",
    redemption_count: "1",
    reversal_count: "0",
    reversal_amount: "0.00",
    net_amount: "5.00",
  });

  const noPython = spawnSync("python3", ["--version"]).error !== undefined && "there is no python3 here";
  await t.test("Python's csv module reads the same", { skip: noPython }, async (t) => {
    const script =
      "import csv, json, sys, io; print(json.dumps(list(csv.reader(io.TextIOWrapper(sys.stdin.buffer, 'utf-8', newline=''), strict=True))))";
    const python = spawnSync("python3", ["-c", script], { input: files["detail"], encoding: "utf8" });
    t.strictSame(JSON.parse(python.stdout), parseCsv(files["detail"]!));
  });
  t.strictSame(books.errors, []);
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("days come in order, page by page; a day without entries is a header only", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  await service.makeBatch(a, "tpl_fixed", 1);
  const nothing = await a.get("/v1/reconciliations");
  t.match(nothing.json, { reconciliations: [], next_cursor: /^\d{4}-\d\d-\d\d$/ });
  await books.sequence();
  await setZone(service, "pty_a", zoneOf(offset + 5 * daySeconds));
  await books.close();
  const dates = Array.from({ length: 5 }, (_, day) => dateAt(offset + day * daySeconds));
  const listed = async (query: string) => {
    const { json } = await a.get(`/v1/reconciliations${query}`);
    return [json.reconciliations.map(({ business_date }: any) => business_date), json.next_cursor];
  };
  t.strictSame(await listed(""), [dates, dates[4]]);
  t.strictSame(await listed("?limit=2"), [dates.slice(0, 2), dates[1]]);
  t.strictSame(await listed(`?limit=2&cursor=${dates[1]}`), [dates.slice(2, 4), dates[3]]);
  t.strictSame(await listed(`?cursor=${dates[3]}`), [dates.slice(4), dates[4]]);
  t.strictSame(await listed(`?cursor=${dates[4]}`), [[], dates[4]], "at the end, the given cursor");
  t.strictSame(await listed("?cursor=2000-02-29&limit=1"), [dates.slice(0, 1), dates[0]]);
  t.strictSame(await listed(`?cursor=${nothing.json.next_cursor}`), [dates, dates[4]]);

  const [{ files }] = (await a.get("/v1/reconciliations?limit=1")).json.reconciliations;
  for (const { kind, href, rows } of files) {
    const file = await a.get(href);
    t.strictSame([file.text, rows], [`${columns[kind as "detail"].join()}\r\n`, 0]);
  }
  for (const cursor of [
    "",
    "2026-02-30",
    "2025-02-29",
    "2026-13-01",
    "2026-1-1",
    "20260101",
    "0000-01-01",
    "tomorrow",
    "2026-01-01T00:00:00Z",
    "cur_AAAAAAAAAAA",
  ]) {
    t.match(
      await a.get(`/v1/reconciliations?cursor=${cursor}`),
      { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path: "cursor" }] } } },
      cursor,
    );
  }
  for (const limit of ["0", "1001", "x", ""])
    t.match(
      await a.get(`/v1/reconciliations?limit=${limit}`),
      { status: 400, json: { details: { issues: [{ path: "limit" }] } } },
      limit,
    );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("what names no file is 404, whatever is wrong with it", async (t) => {
  const service = await startService(t);
  const [a, stranger] = [service.as("ak_a"), service.as("ak_a_stranger")];
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  await service.makeBatch(a, "tpl_fixed", 1);
  await books.sequence();
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  await books.close();
  const date = dateAt(offset);
  const path = `/v1/reconciliations/${date}`;
  t.equal((await a.get(`${path}/detail`)).status, 200);
  t.match(await stranger.get(`${path}/detail`), notFound, "another tenant's");
  for (const target of [
    `${path}/Detail`,
    `${path}/details`,
    `${path}/detail.csv`,
    `${path}/detail%20`,
    `/v1/reconciliations/${dateAt(offset + daySeconds)}/detail`,
    "/v1/reconciliations/2026-02-30/detail",
    "/v1/reconciliations/0000-00-00/detail",
    "/v1/reconciliations/today/summary",
    `/v1/reconciliations/%20${date}/detail`,
    "/v1/reconciliations/99999-01-01/detail",
    "/v1/reconciliations/infinity/detail",
    `${path}/detail?distributor=pty_none`,
  ]) {
    t.match(await a.get(target), notFound, target);
  }
  t.match(await a.get(`${path}/detail?distributor=`), {
    status: 400,
    json: { details: { issues: [{ path: "distributor" }] } },
  });
  t.match(await a.get(`${path}/detail?x=1`), { status: 400 });
  t.match(await a.get(path), { status: 404, json: { code: "ROUTE_NOT_FOUND" } });
  t.match(await a.post(`${path}/detail`, {}), { status: 405, json: { code: "METHOD_NOT_ALLOWED" } });
  const nonce = "fedcba9876543210";
  t.equal((await a.get(`${path}/nothing`, { nonce })).status, 404);
  t.match(await a.get(`${path}/detail`, { nonce }), { status: 401, json: { code: "NONCE_REUSED" } });
});

t.test(
  "Variant A, several distributors: the list is complete up to the date that all have, and a download names whose",
  async (t) => {
    const many = manyDistributors(3);
    const service = await startService(t, { tenants: [...tenants, many.tenant] });
    const by = service.as("ak_many");
    const offset = noonOffset();
    for (const party of many.parties) await setZone(service, party, zoneOf(offset));
    const books = await keepBusinessDays(t, service);
    for (const distributor of many.parties) {
      const { batch } = await must(by, "/v1/batches", { template: "tpl_one", total_count: 1, distributor });
      await service.mint();
      await must(by, "/v1/batches/allocate", { batch: batch.external_id });
    }
    await books.sequence();
    const listed = async (query = "") =>
      (await by.get(`/v1/reconciliations${query}`)).json.reconciliations.map(
        ({ business_date, distributor_party_id }: any) => `${business_date} ${distributor_party_id}`,
      );
    const [first, second] = [dateAt(offset), dateAt(offset + daySeconds)];

    await setZone(service, "pty_d1", zoneOf(offset + 2 * daySeconds));
    await books.close();
    t.strictSame(await listed(), [], "two of three still have that day");
    t.equal(
      (await by.get(`/v1/reconciliations/${first}/detail`)).status,
      200,
      "while one alone has the date, it is the one that is meant",
    );
    for (const party of ["pty_d0", "pty_d2"]) await setZone(service, party, zoneOf(offset + daySeconds));
    await books.close();
    t.strictSame(
      await listed(),
      many.parties.map((party) => `${first} ${party}`),
      "and none of a date that others will come to",
    );
    t.strictSame(
      await listed("?limit=1"),
      many.parties.map((party) => `${first} ${party}`),
      "a date is never cut in two: its cursor could not go on",
    );
    t.strictSame(await listed(`?cursor=${first}`), []);

    const { files } = (await by.get("/v1/reconciliations")).json.reconciliations[2];
    t.equal(files[0].href, `/v1/reconciliations/${first}/detail?distributor=pty_d2`);
    t.equal((await by.get(files[0].href)).headers["etag"], `"${files[0].sha256}"`);
    t.match(await by.get(`/v1/reconciliations/${first}/detail`), {
      status: 422,
      json: { code: "AMBIGUOUS_DISTRIBUTOR" },
    });
    t.match(await by.get(`/v1/reconciliations/${first}/detail?distributor=pty_a`), notFound, "another tenant's party");
    t.equal((await by.get(`/v1/reconciliations/${second}/detail`)).status, 200);

    for (const party of ["pty_d0", "pty_d2"]) await setZone(service, party, zoneOf(offset + 2 * daySeconds));
    await books.close();
    t.strictSame(
      await listed(`?cursor=${first}`),
      many.parties.map((party) => `${second} ${party}`),
    );
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);

t.test("Variant B: each distributor has its own and sees no other's", async (t) => {
  const service = await startService(t);
  const [maker, dist, pos] = ["ak_maker", "ak_dist", "ak_pos"].map(service.as) as [Client, Client, Client];
  const offset = noonOffset();
  for (const party of ["pty_maker", "pty_dist"]) await setZone(service, party, zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  const { codes } = await service.makeBatch(maker, "tpl_b", 1);
  await must(pos, "/v1/coupons/redeem", { coupon: codes[0], merchant: "mch_b", store: "S1", terminal: "T1" });
  const { batch } = await must(maker, "/v1/batches", { template: "tpl_b", total_count: 1, distributor: "pty_maker" });
  await service.mint();
  await must(maker, "/v1/batches/allocate", { batch: batch.external_id });
  await books.sequence();
  for (const party of ["pty_maker", "pty_dist"]) await setZone(service, party, zoneOf(offset + daySeconds));
  await books.close();
  const date = dateAt(offset);
  const own = (await dist.get("/v1/reconciliations")).json.reconciliations;
  t.strictSame(
    own.map(({ files }: any) => files[0].rows),
    [1],
  );
  t.notOk("distributor_party_id" in own[0]);
  t.match((await dist.get(own[0].files[0].href)).text, /,S1,T1,/);
  t.strictSame(
    (await maker.get("/v1/reconciliations")).json.reconciliations.map(({ files }: any) => files[0].rows),
    [0],
  );
  t.strictSame((await pos.get("/v1/reconciliations")).json.reconciliations, []);
  t.match(await pos.get(`/v1/reconciliations/${date}/detail`), notFound);
  t.equal((await dist.get(`/v1/reconciliations/${date}/detail?distributor=pty_dist`)).status, 200);
  t.match(await dist.get(`/v1/reconciliations/${date}/detail?distributor=pty_maker`), notFound);
});
