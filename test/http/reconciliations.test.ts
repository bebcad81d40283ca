// The list of closed business days, and the paths of their files. For the contents see reconciliation-files.test.ts.
import t from "tap";
import { columns } from "../../src/formats/statement-csv.ts";
import {
  daySeconds,
  keepBusinessDays,
  manyDistributors,
  noonOffset,
  setZone,
  zoneOf,
} from "../support/business-days.ts";
import { postOk, type Client } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { tenants } from "../support/tenants.ts";
import { newRequestId, startService } from "../support/service.ts";

const ambiguous = { status: 422, json: { code: "AMBIGUOUS_DISTRIBUTOR", details: null } };
const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "reconciliation" } } };
const post = (by: Client, path: string, body: object) => postOk(by, path, { request_id: newRequestId(), ...body });
const dateAt = (offset: number) => new Date(Date.now() + offset * 1000).toISOString().slice(0, 10);

t.test("Days are listed in order, page by page; the files of a day without entries have only a header", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  await service.makeBatch(a, "tpl_fixed", 1);
  const nothing = await a.get("/v1/reconciliations");
  t.strictSame(nothing.json, { reconciliations: [], next_cursor: "1970-01-01" });
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
  t.strictSame(await listed(`?cursor=${dates[4]}`), [[], dates[4]], "at the end next_cursor is the given cursor");
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
    fits(
      t,
      await a.get(`/v1/reconciliations?cursor=${cursor}`),
      { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path: "cursor" }] } } },
      cursor,
    );
  }
  for (const limit of ["0", "1001", "x", ""])
    fits(
      t,
      await a.get(`/v1/reconciliations?limit=${limit}`),
      { status: 400, json: { details: { issues: [{ path: "limit" }] } } },
      limit,
    );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("A path that names no file is 404, whatever is wrong with it", async (t) => {
  const service = await startService(t);
  const [a, stranger] = [service.as("ak_a"), service.as("ak_a_stranger")];
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  await service.makeBatch(a, "tpl_fixed", 1);
  await books.sequence();
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  const date = dateAt(offset);
  const path = `/v1/reconciliations/${date}`;
  const statuses = async () => {
    const targets = [`${path}/detail`, `${path}/summary`];
    const answers = await Promise.all(targets.flatMap((target) => [a.get(target), a.head(target)]));
    return answers.map(({ status }) => status);
  };
  await books.closer.closeDays();
  t.strictSame(await statuses(), [404, 404, 404, 404], "closed, not ready");
  await books.closer.finishStatements();
  t.strictSame(await statuses(), [200, 200, 200, 200]);
  fits(t, await stranger.get(`${path}/detail`), notFound, "another tenant's file");
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
    fits(t, await a.get(target), notFound, target);
  }
  fits(t, await a.get(`${path}/detail?distributor=`), {
    status: 400,
    json: { details: { issues: [{ path: "distributor" }] } },
  });
  fits(t, await a.get(`${path}/detail?x=1`), { status: 400 });
  fits(t, await a.get(path), { status: 404, json: { code: "ROUTE_NOT_FOUND" } });
  fits(t, await a.post(`${path}/detail`, {}), { status: 405, json: { code: "METHOD_NOT_ALLOWED" } });
  const nonce = "fedcba9876543210";
  t.equal((await a.get(`${path}/nothing`, { nonce })).status, 404);
  fits(t, await a.get(`${path}/detail`, { nonce }), { status: 401, json: { code: "NONCE_REUSED" } });
});

t.test("Variant A, several distributors: the list ends with the last date that all have closed", async (t) => {
  const many = manyDistributors(3);
  const service = await startService(t, { tenants: [...tenants, many.tenant] });
  const by = service.as("ak_many");
  const offset = noonOffset();
  for (const party of many.parties) await setZone(service, party, zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  for (const distributor of many.parties) {
    const { batch } = await post(by, "/v1/batches", { template: "tpl_one", total_count: 1, distributor });
    await service.mint();
    await post(by, "/v1/batches/allocate", { batch: batch.external_id });
  }
  await books.sequence();
  const listed = async (query = "") =>
    (await by.get(`/v1/reconciliations${query}`)).json.reconciliations.map(
      ({ business_date, distributor_party_id }: any) => `${business_date} ${distributor_party_id}`,
    );
  const [first, second] = [dateAt(offset), dateAt(offset + daySeconds)];

  await setZone(service, "pty_d1", zoneOf(offset + 2 * daySeconds));
  await books.close();
  t.strictSame(await listed(), [], "two of three distributors have not closed that day");
  const detail = (date: string, distributor?: string) =>
    by.get(`/v1/reconciliations/${date}/detail${distributor === undefined ? "" : `?distributor=${distributor}`}`);
  fits(t, await detail(first), ambiguous, "a name is needed even while only one distributor has closed the date");
  t.equal((await detail(first, "pty_d1")).status, 200);
  fits(t, await detail(first, "pty_d0"), notFound);
  for (const party of ["pty_d0", "pty_d2"]) await setZone(service, party, zoneOf(offset + daySeconds));
  await books.close();
  t.strictSame(
    await listed(),
    many.parties.map((party) => `${first} ${party}`),
    "a date that others have not closed is not listed",
  );
  t.strictSame(
    await listed("?limit=1"),
    many.parties.map((party) => `${first} ${party}`),
    "a page never ends in the middle of a date, because a cursor is a date",
  );
  t.strictSame(await listed(`?cursor=${first}`), []);

  const { files } = (await by.get("/v1/reconciliations")).json.reconciliations[2];
  t.equal(files[0].href, `/v1/reconciliations/${first}/detail?distributor=pty_d2`);
  t.equal((await by.get(files[0].href)).headers["etag"], `"${files[0].sha256}"`);
  for (const date of [first, second, dateAt(offset + 9 * daySeconds), "1999-12-31"])
    fits(t, await detail(date), ambiguous, `${date}, whoever has closed it`);
  fits(t, await detail("2026-02-30"), notFound, "an impossible date is no statement of anyone");
  fits(t, await detail(first, "pty_a"), notFound, "another tenant's party");
  t.equal((await detail(second, "pty_d1")).status, 200);

  for (const party of ["pty_d0", "pty_d2"]) await setZone(service, party, zoneOf(offset + 2 * daySeconds));
  await books.close();
  t.strictSame(
    await listed(`?cursor=${first}`),
    many.parties.map((party) => `${second} ${party}`),
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("Variant B: each distributor sees its own files only", async (t) => {
  const service = await startService(t);
  const [maker, dist, pos] = ["ak_maker", "ak_dist", "ak_pos"].map(service.as) as [Client, Client, Client];
  const offset = noonOffset();
  for (const party of ["pty_maker", "pty_dist"]) await setZone(service, party, zoneOf(offset));
  const books = await keepBusinessDays(t, service);
  const { codes } = await service.makeBatch(maker, "tpl_b", 1);
  await post(pos, "/v1/coupons/redeem", { coupon: codes[0], merchant: "mch_b", store: "S1", terminal: "T1" });
  const { batch } = await post(maker, "/v1/batches", { template: "tpl_b", total_count: 1, distributor: "pty_maker" });
  await service.mint();
  await post(maker, "/v1/batches/allocate", { batch: batch.external_id });
  await books.sequence();
  for (const party of ["pty_maker", "pty_dist"]) await setZone(service, party, zoneOf(offset + daySeconds));
  await books.close();
  const date = dateAt(offset);
  const own = (await dist.get("/v1/reconciliations")).json.reconciliations;
  t.strictSame(
    own.map(({ files }: any) => files[0].rows),
    [1],
  );
  t.equal(own[0].distributor_party_id, "pty_dist");
  t.equal(own[0].files[0].href, `/v1/reconciliations/${date}/detail`, "the caller is the distributor");
  t.match((await dist.get(own[0].files[0].href)).text, /,S1,T1,/);
  t.strictSame(
    (await maker.get("/v1/reconciliations")).json.reconciliations.map(({ files }: any) => files[0].rows),
    [0],
  );
  t.strictSame((await pos.get("/v1/reconciliations")).json.reconciliations, []);
  fits(t, await pos.get(`/v1/reconciliations/${date}/detail`), notFound);
  t.equal((await dist.get(`/v1/reconciliations/${date}/detail?distributor=pty_dist`)).status, 200);
  fits(t, await dist.get(`/v1/reconciliations/${date}/detail?distributor=pty_maker`), notFound);
});
