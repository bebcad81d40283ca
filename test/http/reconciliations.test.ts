// Closed business days over HTTP: their list, the paths of their files, and what a CSV reader gets. test/owners
// compares every field with the books.
import { createHash } from "node:crypto";
import t, { type Test } from "tap";
import { columns, type Kind } from "../../src/formats/statement-csv.ts";
import { manyDistributors, moveToNoon, noonDate, openBooks } from "../support/business-days.ts";
import type { Caller, Coupon } from "../support/caller.ts";
import { parseCsv, readCsv } from "../support/csv.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";

const ambiguous = { status: 422, json: { code: "AMBIGUOUS_DISTRIBUTOR", details: null } };
const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "reconciliation" } } };
const invalid = (path: string) => ({ status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path }] } } });

// Tenant A on a business day that lasts until `endDay`, with a batch and no entries.
async function startDay(t: Test, count: number) {
  const world = await scenario(t, { http: true });
  await moveToNoon(world, "pty_a");
  const coupons = await world.a.makeCoupons(count);
  await world.steps.sequence();
  const endDay = (days = 1) => moveToNoon(world, "pty_a", days);
  return { world, a: world.a.distributor, coupons, endDay };
}

t.test("Days are listed in order, page by page; the files of a day without entries have only a header", async (t) => {
  const { world, a, endDay } = await startDay(t, 1);
  const nothing = await a.get("/v1/reconciliations");
  t.strictSame(nothing.json, { reconciliations: [], next_cursor: "1970-01-01" });
  await endDay(5);
  await world.steps.close();
  const dates = Array.from({ length: 5 }, (_, day) => noonDate(day));
  const listed = async (query: string) => {
    const { json } = await a.get(`/v1/reconciliations${query}`);
    return [json.reconciliations.map(({ business_date }: any) => business_date), json.next_cursor];
  };
  t.strictSame(await listed(""), [dates, dates[4]]);
  t.strictSame(await listed("?limit=2"), [dates.slice(0, 2), dates[1]]);
  t.strictSame(await listed("?cursor=&limit=2"), [dates.slice(0, 2), dates[1]], "an empty cursor counts as absent");
  t.strictSame(await listed(`?limit=2&cursor=${dates[1]}`), [dates.slice(2, 4), dates[3]]);
  t.strictSame(await listed(`?cursor=${dates[4]}`), [[], dates[4]], "at the end next_cursor is the given cursor");
  t.strictSame(await listed("?cursor=2000-02-29&limit=1"), [dates.slice(0, 1), dates[0]]);
  t.strictSame(await listed(`?cursor=${nothing.json.next_cursor}`), [dates, dates[4]]);

  // 101 days, all before the others.
  const psql = await world.openPsql({ triggers: false });
  await psql.run(
    `insert into core.statement
     select (jsonb_populate_record(s, jsonb_build_object('business_date', date '2001-01-01' + n))).*
     from core.statement s, generate_series(0, 100) n
     where s.business_date = (select min(business_date) from core.statement)`,
  );
  t.equal((await listed(""))[0].length, 100, "the usual page");
  t.equal((await listed("?limit=101"))[0].length, 101);
  await psql.run("delete from core.statement where business_date < '2002-01-01'");

  const [{ files }] = (await a.get("/v1/reconciliations?limit=1")).json.reconciliations;
  for (const { kind, href, rows } of files) {
    const file = await a.get(href);
    t.strictSame([file.text, rows], [`${columns[kind as Kind].join()}\r\n`, 0]);
  }
  const noDates = ["2026-02-30", "2025-02-29", "2026-13-01", "2026-1-1", "20260101", "0000-01-01", "tomorrow"];
  for (const cursor of [...noDates, "2026-01-01T00:00:00Z", "cur_AAAAAAAAAAA"])
    fits(t, await a.get(`/v1/reconciliations?cursor=${cursor}`), invalid("cursor"), cursor);
  for (const limit of ["0", "1001", "x", ""])
    fits(t, await a.get(`/v1/reconciliations?limit=${limit}`), invalid("limit"), limit);
});

t.test("A path that names no file is 404, whatever is wrong with it", async (t) => {
  const { world, a, endDay } = await startDay(t, 1);
  await endDay();
  const path = `/v1/reconciliations/${noonDate()}`;
  const statuses = async () => {
    const targets = [`${path}/detail`, `${path}/summary`];
    const answers = await Promise.all(targets.flatMap((target) => [a.get(target), a.head(target)]));
    return answers.map(({ status }) => status);
  };
  await world.steps.closeDays();
  t.strictSame(await statuses(), [404, 404, 404, 404], "closed, not ready");
  await world.steps.finishStatements();
  t.strictSame(await statuses(), [200, 200, 200, 200]);
  for (const target of [
    `${path}/Detail`,
    `${path}/detail.csv`,
    `${path}/detail%20`,
    `/v1/reconciliations/${noonDate(1)}/detail`,
    "/v1/reconciliations/2026-02-30/detail",
    "/v1/reconciliations/today/summary",
    "/v1/reconciliations/infinity/detail",
    `${path}/detail?distributor=pty_none`,
  ])
    fits(t, await a.get(target), notFound, target);
  fits(t, await a.get(`${path}/detail?distributor=`), invalid("distributor"));
  fits(t, await a.get(path), { status: 404, json: { code: "ROUTE_NOT_FOUND" } });
  const nonce = "fedcba9876543210";
  t.equal((await a.get(`${path}/nothing`, { nonce })).status, 404);
  fits(t, await a.get(`${path}/detail`, { nonce }), { status: 401, json: { code: "NONCE_REUSED" } });
});

t.test("Variant A, several distributors: the list ends with the last date that all have closed", async (t) => {
  const { tenant, parties } = manyDistributors(3);
  const world = await scenario(t, { file: { tenants: [tenant] }, http: true });
  const by = world.as("ak_many");
  for (const party of parties) await moveToNoon(world, party);
  await openBooks(world, parties, 1);
  await world.steps.sequence();
  const endDays = async (days: number, ...those: string[]) => {
    for (const party of those) await moveToNoon(world, party, days);
    await world.steps.close();
  };
  const listed = async (query = "") =>
    (await by.get(`/v1/reconciliations${query}`)).json.reconciliations.map(
      ({ business_date, distributor_party_id }: any) => `${business_date} ${distributor_party_id}`,
    );
  const ofAll = (date: string) => parties.map((party) => `${date} ${party}`);
  const detail = (date: string, query = "") => by.get(`/v1/reconciliations/${date}/detail${query}`);
  const [first, second] = [noonDate(), noonDate(1)];

  await endDays(2, "pty_d1");
  t.strictSame(await listed(), [], "two of three distributors have not closed that day");
  fits(t, await detail(first), ambiguous, "a name is needed even while only one distributor has closed the date");
  t.equal((await detail(first, "?distributor=pty_d1")).status, 200);
  fits(t, await detail(first, "?distributor=pty_d0"), notFound);
  await endDays(1, "pty_d0", "pty_d2");
  t.strictSame(await listed(), ofAll(first), "a date that others have not closed is not listed");
  t.strictSame(await listed("?limit=1"), ofAll(first), "a page never ends in the middle of a date");
  t.strictSame(await listed(`?cursor=${first}`), []);

  const { files } = (await by.get("/v1/reconciliations")).json.reconciliations[2];
  t.equal(files[0].href, `/v1/reconciliations/${first}/detail?distributor=pty_d2`);
  t.equal((await by.get(files[0].href)).headers["etag"], `"${files[0].sha256}"`);
  for (const date of [first, second, noonDate(9), "1999-12-31"])
    fits(t, await detail(date), ambiguous, `${date}, whichever of them closed it`);
  fits(t, await detail("2026-02-30"), notFound, "no distributor closes an impossible date");
  t.equal((await detail(second, "?distributor=pty_d1")).status, 200);

  await endDays(2, "pty_d0", "pty_d2");
  t.strictSame(await listed(`?cursor=${first}`), ofAll(second));
});

type File = { kind: Kind; href: string; rows: number; bytes: number; sha256: string };

t.test("A closed day is listed, and each file has the listed size, hash and contents", async (t) => {
  const { world, a, coupons, endDay } = await startDay(t, 2);
  const [first, second] = coupons as [Coupon, Coupon];
  const { ok } = world.a.till;
  await ok.redeem(first, { store: 'say "hi",\r\ntwice', order_amount: 100 });
  await ok.redeem(second, { store: "=1+1", terminal: "＝1+1", order_id: "-5", order_amount: 100 });
  await ok.reverse(first);
  await world.steps.close();
  t.strictSame((await a.get("/v1/reconciliations")).json.reconciliations, [], "a day that still lasts is not listed");
  await endDay();
  await world.steps.close();

  const [{ files }] = (await a.get("/v1/reconciliations")).json.reconciliations as [{ files: File[] }];
  const [detail, summary] = [await checkFile(t, a, files[0]!), await checkFile(t, a, files[1]!)];
  t.equal(files[0]!.rows, 3);
  // The line break of the store became a space. test/fuzz/texts.test.ts tries any text.
  const store = 'say "hi", twice';
  fits(t, readCsv(detail), [
    { entry_type: "REDEMPTION", redemption_id: first.redemption, store, terminal: "", order_id: "" },
    { entry_type: "REDEMPTION", redemption_id: second.redemption, store: "'=1+1", terminal: "'＝1+1", order_id: "'-5" },
    { entry_type: "REVERSAL", redemption_id: first.redemption, store, entry_id: /^led_[0-9a-z]{26}$/ },
  ]);
  fits(t, readCsv(summary), [{ net_amount: "5.00" }]);
});

async function checkFile(t: Test, a: Caller, { kind, href, ...listed }: File): Promise<string> {
  const file = await a.get(href);
  const etag = `"${listed.sha256}"`;
  t.equal(href, `/v1/reconciliations/${noonDate()}/${kind}`);
  fits(t, file, {
    status: 200,
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-length": String(listed.bytes),
      "cache-control": "private, no-cache",
      etag,
      "content-disposition": `attachment; filename="${kind}-${noonDate()}-pty_a.csv"`,
      "x-request-id": /^req_/,
    },
  });
  const sha256 = createHash("sha256").update(file.text).digest("hex");
  t.strictSame([Buffer.byteLength(file.text), sha256], [listed.bytes, listed.sha256], kind);
  t.equal(parseCsv(file.text)[0]!.join(), columns[kind].join());
  t.equal((await a.get(href)).text, file.text, "a second download has the same bytes");
  for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
    const { status, text, headers } = await a.get(href, { headers: { "if-none-match": tag } });
    t.strictSame([status, text, headers["etag"], headers["content-length"]], [304, "", etag, undefined], tag);
    t.equal(headers["cache-control"], "private, no-cache", "only its caller may keep it");
  }
  for (const tag of ['"x"', listed.sha256, etag.toUpperCase()])
    t.equal((await a.get(href, { headers: { "if-none-match": tag } })).status, 200, tag);
  return file.text;
}
