// The files of a closed business day: the list describes them, and a CSV reader gets every field back.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import t, { type Test } from "tap";
import { columns } from "../../src/formats/statement-csv.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { postOk, type Client } from "../support/client.ts";
import { parseCsv, readCsv } from "../support/csv.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { newRequestId, startService } from "../support/service.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const dateAt = (offset: number) => new Date(Date.now() + offset * 1000).toISOString().slice(0, 10);

// Texts of stores, terminals and orders, and what the file shows: a ' in front of text that a spreadsheet would run.
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

// Control characters and the like are not allowed in an order_id.
const isOrderId = (text: string) => !/[\r\n\u200b]/.test(text);

type Day = { date: string; batch: string; couponIds: string[]; redemptions: string[]; reversal: string };
type File = { kind: "detail" | "summary"; href: string; rows: number; bytes: number; sha256: string };

const post = (by: Client, path: string, body: object) => postOk(by, path, { request_id: newRequestId(), ...body });

// A closed business day: a redemption for each text, one at another merchant, and a reversal of the first.
async function closeDay(t: Test) {
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
      ...(isOrderId(text) && { order_id: text }),
      order_amount: 100 + index,
    };
    redemptions.push((await post(a, "/v1/coupons/redeem", { coupon: codes[index], ...order })).redemption);
  }
  redemptions.push((await post(a, "/v1/coupons/redeem", { coupon: codes.at(-1), merchant: "mch_a2" })).redemption);
  const { reversal } = await post(a, "/v1/redemptions/reverse", { redemption: redemptions[0] });
  await books.close();
  t.strictSame((await a.get("/v1/reconciliations")).json.reconciliations, [], "a day that still lasts is not listed");
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  await books.close();
  return { service, a, books, day: { date: dateAt(offset), batch, couponIds, redemptions, reversal } };
}

t.test("A closed day is listed, and each file has the listed size, hash and contents", async (t) => {
  const { service, a, books, day } = await closeDay(t);
  const files = await checkList(t, a, day);
  const texts: Record<string, string> = {};
  for (const file of files) texts[file.kind] = await checkFile(t, a, day, file);
  checkDetail(t, day, texts["detail"]!);
  checkSummary(t, day, texts["summary"]!);

  const noPython = spawnSync("python3", ["--version"]).error !== undefined && "python3 is not installed";
  await t.test("Python's csv module reads the same fields", { skip: noPython }, async (t) => {
    const script = `
import csv, json, sys, io
text = io.TextIOWrapper(sys.stdin.buffer, 'utf-8', newline='')
print(json.dumps(list(csv.reader(text, strict=True))))`;
    const python = spawnSync("python3", ["-c", script], { input: texts["detail"], encoding: "utf8" });
    t.strictSame(JSON.parse(python.stdout), parseCsv(texts["detail"]!));
  });
  t.strictSame(books.errors, []);
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

async function checkList(t: Test, a: Client, { date }: Day): Promise<File[]> {
  const list = await a.get("/v1/reconciliations");
  fits(t, list, { status: 200, json: { next_cursor: date } });
  t.equal(list.json.reconciliations.length, 1);
  const [entry] = list.json.reconciliations;
  fits(t, entry, {
    business_date: date,
    distributor_party_id: "pty_a",
    closed_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  });
  t.strictSame(
    entry.files.map(({ kind, href, rows }: File) => ({ kind, href, rows })),
    [
      { kind: "detail", href: `/v1/reconciliations/${date}/detail`, rows: places.length + 2 },
      { kind: "summary", href: `/v1/reconciliations/${date}/summary`, rows: 2 },
    ],
  );
  return entry.files;
}

async function checkFile(t: Test, a: Client, { date }: Day, { kind, href, ...listed }: File): Promise<string> {
  const file = await a.get(href);
  const etag = `"${listed.sha256}"`;
  fits(t, file, {
    status: 200,
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-length": String(listed.bytes),
      etag,
      "content-disposition": `attachment; filename="${kind}-${date}-pty_a.csv"`,
      "x-request-id": /^req_/,
    },
  });
  t.strictSame([Buffer.byteLength(file.text), sha256(file.text)], [listed.bytes, listed.sha256], kind);
  t.equal(parseCsv(file.text)[0]!.join(), columns[kind].join());
  t.equal(columns[kind].at(-1), "distributor_id");
  t.equal((await a.get(href)).text, file.text, "a second download has the same bytes");
  for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
    const unchanged = await a.get(href, { headers: { "if-none-match": tag } });
    t.strictSame(
      [unchanged.status, unchanged.text, unchanged.headers["etag"], unchanged.headers["content-length"]],
      [304, "", etag, undefined],
      tag,
    );
  }
  for (const tag of ['"x"', listed.sha256, etag.toUpperCase()])
    t.equal((await a.get(href, { headers: { "if-none-match": tag } })).status, 200, tag);
  return file.text;
}

function checkDetail(t: Test, { date, batch, couponIds, redemptions, reversal }: Day, text: string): void {
  const detail = readCsv(text);
  const common = {
    business_date: date,
    batch_id: batch,
    template_id: "tpl_fixed",
    currency: "EUR",
    distributor_id: "pty_a",
  };
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
        order_id: isOrderId(text) ? shown : "",
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
    fits(t, [entry_id, occurred_at, recorded_at], [/^led_[0-9a-z]{26}$/, /T.*\.\d{3}Z$/, /T.*\.\d{3}Z$/]);
}

function checkSummary(t: Test, { date }: Day, text: string): void {
  const [first, second] = readCsv(text);
  t.strictSame(first, {
    business_date: date,
    merchant_id: "mch_a",
    template_id: "tpl_fixed",
    currency: "EUR",
    redemption_count: String(places.length),
    redemption_amount: `${places.length * 5}.00`,
    reversal_count: "1",
    reversal_amount: "-5.00",
    net_amount: `${(places.length - 1) * 5}.00`,
    distributor_id: "pty_a",
  });
  fits(t, second, {
    merchant_id: "mch_a2",
    redemption_count: "1",
    reversal_count: "0",
    reversal_amount: "0.00",
    net_amount: "5.00",
    distributor_id: "pty_a",
  });
}
