// `npm start` on a disk that gets full: first its tables cannot grow, then PostgreSQL ends because it cannot write its
// log. Tills keep calling, and the service works again by itself once there is space. Nothing was lost or done twice.
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { beforeDeadline } from "../../src/common/deadline.ts";
import { openSession } from "../../src/database/connect.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { findEmbedded } from "../../src/embedded/find-address.ts";
import { createClient, sendPlain, type Client } from "../support/client.ts";
import { findFiring } from "../support/alerts.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { findFreePort } from "../support/listen.ts";
import { hasEnded, launch, runProgram, type Launched } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { scrape } from "../support/scrape.ts";
import { canMount, fillDisk, useSmallDisk } from "../support/small-disk.ts";
import { party, secretOf, tenants } from "../support/tenants.ts";
import { startTills, type Tills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";

const diskBytes = 256 * 2 ** 20;
const within = { withinMs: 100_000 };
const ended = "is full: the database server stopped; it restarts as soon as there is space";
const skip = canMount() ? false : "only root may mount a small disk";

type Site = { disk: string; url: string; metrics: { url: string }; env: Record<string, string>; running: Launched };

async function start(t: Test, env: Record<string, string>): Promise<Launched> {
  const running = launch(t, "start", { env });
  await running.untilPrinted(/Listening on/);
  return running;
}

async function startSite(t: Test): Promise<Site> {
  const disk = useSmallDisk(t, diskBytes, async () => {
    await site.running.stop();
    // The database server ends after the program.
    await waitUntil("the end of the server", () => findEmbedded(env.DATA_DIR) === null, within);
  });
  const port = await findFreePort();
  const metricsPort = await findFreePort();
  const data = { DATA_DIR: path.join(disk, "data"), WEBHOOK_ALLOW: "127.0.0.0/8" };
  const env = { ...data, PORT: String(port), CONSOLE_PORT: "0", METRICS_PORT: String(metricsPort) };
  const metrics = { url: `http://127.0.0.1:${metricsPort}/metrics` };
  const site: Site = { disk, url: `http://127.0.0.1:${port}`, metrics, env, running: await start(t, env) };
  return site;
}

async function provision(t: Test, { env }: Site, receiver: Receiver): Promise<Scenario> {
  const webhook = { url: receiver.url, secret: newWebhookSecret() };
  const document = { tenants: [{ ...tenants[0], parties: [party("pty_a", { webhook })] }] };
  const masterKeyText = readFileSync(path.join(env["DATA_DIR"]!, "master.key"), "utf8").trim();
  return scenario(t, { file: document, on: { address: findEmbedded(env["DATA_DIR"]!)!, masterKeyText } });
}

const fillerOf = ({ disk }: Site) => path.join(disk, "filler");
const readyOf = async ({ url }: Site) => (await sendPlain(url, "GET", "/readyz")).status;
const count = (text: string, sentence: string) => text.split(sentence).length - 1;

// Waits until many calls have this status, and /readyz too.
async function untilAnswered(site: Site, tills: Tills, status: 200 | 503): Promise<void> {
  const before = tills.calls.length;
  const answered = () => tills.calls.slice(before).filter((call) => call.status === status).length;
  await waitUntil(`calls with ${status}`, async () => answered() > 30 && (await readyOf(site)) === status, within);
}

// A replication slot keeps PostgreSQL from using old segments of its log again. It is not temporary: any error in its
// session would drop it, and so would a restart of the server.
const keepSegments = `
  select pg_create_physical_replication_slot('kept', true)
  where not exists (select from pg_replication_slots where slot_name = 'kept')`;
const switchSegment = "select pg_switch_wal() from pg_logical_emit_message(false, 'test', repeat('-', 100000))";

// Fills the disk, and segment after segment of the write-ahead log until PostgreSQL ends because it cannot make another
// one.
async function exhaustLog(site: Site, service: Scenario, meanwhile = () => {}): Promise<void> {
  const { output: log } = site.running;
  const ends = count(log(), ended);
  const open = () => openSession(service.address, { name: "coupon test" });
  let session = open();
  try {
    await session.rows(keepSegments);
    fillDisk(fillerOf(site));
    meanwhile();
    const hasEndedNow = async () => {
      try {
        fillDisk(fillerOf(site));
        // A call of the driver may hang for ever if the server goes away during a connect.
        await beforeDeadline(session.rows(switchSegment), performance.now() + 5_000);
      } catch {
        // Refused, late, or the server ends: its log tells. The server may find the space to start again by itself. The
        // next attempt then needs a new connection, because this one may be lost or hang.
        await session.end();
        session = open();
      }
      return count(log(), ended) > ends;
    };
    await waitUntil("the end of the server in the log", hasEndedNow, within);
  } finally {
    await session.end();
  }
}

// A worker that could not record what it did keeps its leases on purpose. They run out after up to 60 s.
async function passLeases({ owner }: Scenario): Promise<void> {
  await owner.rows("update core.webhook set lease_until = clock_timestamp() where lease_until is not null");
  await owner.rows("update core.batch set mint_lease_until = clock_timestamp() where mint_lease_until is not null");
}

async function checkBooks(t: Test, { owner }: Scenario, tills: Tills, batches: string[], receiver: Receiver) {
  const redeems = tills.calls.filter(({ path, status }) => /redeem|confirm/.test(path) && status === 200);
  t.equal(redeems.length, tills.used.length, "every coupon was redeemed once");
  const [found] = await owner.rows<object>(
    `select (select count(*)::int from core.request
             where http_status = 200 and request_id = any ($1::text[])) as recorded,
            (select count(*)::int from report.redemption where status = 'REDEEMED') as redemptions,
            (select count(*)::int from report.ledger) as entries`,
    [redeems.map(({ body }) => body["request_id"])],
  );
  const expected = { recorded: redeems.length, redemptions: redeems.length, entries: redeems.length };
  t.strictSame({ ...found }, expected, "every 200 is in the database, and nothing else is");
  await passLeases({ owner } as Scenario);
  const isMinted = async () => {
    const [row] = await owner.rows<{ minted: number }>(
      `select count(*)::int as minted from report.batch
       where batch = any ($1::text[]) and status = 'COMPLETED' and minted_count = 500`,
      [batches],
    );
    return row!.minted === batches.length;
  };
  await waitUntil("the batches to be minted", isMinted, within);
  const delivered = () =>
    new Set(receiver.received.filter(({ body }) => body.includes("coupon.redeemed")).map(({ id }) => id));
  await waitUntil("the deliveries", () => delivered().size >= redeems.length, within);
  t.equal(delivered().size, redeems.length, "every event was delivered");
  t.strictSame(await findBrokenInvariants(owner), []);
}

// A batch that is submitted again until it is accepted: once the disk was exhausted, the calls were refused and the
// service came back, each of which may take as long as one wait.
async function submit(by: Client): Promise<string> {
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 500 };
  return waitUntil(
    "an accepted batch",
    async () => {
      const { status, json } = await by.post("/v1/batches", body);
      return status === 200 && (json.batch.external_id as string);
    },
    { everyMs: 200, withinMs: 3 * within.withinMs },
  );
}

// Stops the program while PostgreSQL is down, and starts it again before and after there is space.
async function stopAndStart(t: Test, site: Site, service: Scenario): Promise<void> {
  await exhaustLog(site, service);
  fits(t, await site.running.stop(), { code: 0 });
  const tooEarly = /^the disk of \S+ is full: the database server did not start/m;
  fits(t, await runProgram("start", { env: site.env }), { code: 1, stderr: tooEarly });
  rmSync(fillerOf(site));
  site.running = await start(t, site.env);
}

t.test("a full disk: calls are refused, nothing is lost, and the service returns by itself", { skip }, async (t) => {
  const site = await startSite(t);
  const receiver = await startReceiver(t);
  const service = await provision(t, site, receiver);
  const by = createClient({ url: site.url, accessKey: "ak_a", secret: secretOf("ak_a") });
  const codes = (await service.a.makeCoupons(3_000)).map(({ code }) => code);
  const tills = startTills({ codes, servers: [site.url], count: 4, pauseMs: 20 });
  await tills.until(100);
  const { program, output: log } = site.running;

  fillDisk(fillerOf(site));
  const batches = [submit(by)];
  await untilAnswered(site, tills, 503);
  // A scrape asks the database at most every 5 s.
  const firing = async () => findFiring(await scrape(site.metrics));
  t.ok((await firing()).includes("CouponDiskFull"), "the alert fires");
  const refused = await by.post("/v1/coupons/query", { coupon: codes[0], merchant: "mch_a" });
  if (refused.status === 503) t.equal(refused.headers["retry-after"], "1");
  const full = "the disk of the database is full: calls get 503 until there is space again";
  t.equal(count(log(), full), 1, "the log says it once");
  rmSync(fillerOf(site));
  await untilAnswered(site, tills, 200);
  await waitUntil("the end of it in the log", () => log().includes("the disk of the database has space again"), within);
  await waitUntil("no alert", async () => (await firing()).length === 0, within);

  await exhaustLog(site, service, () => batches.push(submit(by)));
  await untilAnswered(site, tills, 503);
  const isDown = async () => (await firing()).includes("CouponDatabaseDown");
  await waitUntil("the alert of the database that is down", isDown, within);
  rmSync(fillerOf(site));
  await untilAnswered(site, tills, 200);
  const ends = count(log(), "the database server stopped");
  t.equal(ends, count(log(), "the database server is running again"), "the log says once that the server has ended");
  t.equal(hasEnded(program), false);

  await tills.stop();
  t.strictSame([...new Set(tills.calls.map(({ status }) => status))].sort(), [200, 503]);
  await stopAndStart(t, site, service);
  await checkBooks(t, service, tills, await Promise.all(batches), receiver);
});
