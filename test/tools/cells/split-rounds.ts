// Rounds of a split under load, through one serve and a router: the splitter is killed -9 at a random moment and run
// again. Both halves together must have every redemption that was answered ok, once, and the feed of a puller that runs
// across the split must be whole.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { formatUrl, type Address } from "../../../src/config/database-address.ts";
import { defaultLimits } from "../../../src/config/config.ts";
import { connect } from "../../../src/database/connect.ts";
import { externalId } from "../../../src/formats/id.ts";
import { listen } from "../../../src/http/listener.ts";
import { migrate } from "../../../src/migration/migrate.ts";
import { serve } from "../../../src/serve.ts";
import { root } from "../../support/copy.ts";
import { closeOpenDays } from "../../support/business-days.ts";
import { createClient, type Client } from "../../support/client.ts";
import { startLoggedProgram } from "../../support/logged-program.ts";
import { environmentOf } from "../../support/program.ts";
import { pullEvents } from "../../support/pull-events.ts";
import { newRequestId } from "../../support/request-id.ts";
import { addCells } from "../../support/route.ts";
import { findRouterBinaries, howToInstall, startRouterServer } from "../../support/router.ts";
import { scenario, type Scenario, type Teardown } from "../../support/scenario.ts";
import { createStubLog } from "../../support/stub.ts";
import { merchantOf, secretOf } from "../../support/tenants.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { startCluster } from "../failover/cluster.ts";

export type RoundOptions = { coupons: number; killAfterMs: number | null; perSecond: number };
export type Round = { ok: number; kills: number; splitMs: number; gapMs: { leaving: number; staying: number } };

const mostSeconds = 60;

export async function runRound(t: Teardown, folder: string, options: RoundOptions): Promise<Round> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  const router = await startRouterServer(binaries);
  t.teardown(router.stop);
  const { primary, standby } = await startCluster(t, folder, { isAsynchronous: true });
  await migrate(primary);
  await addCells(router.address, [primary, standby]);
  const world = await scenario(t, { on: { address: primary } });
  const url = await startServing(t, router.address, world);
  const worker = await startWorker(t, folder, primary, world);
  const clientOf = (accessKey: string) => createClient({ url, accessKey, secret: secretOf(accessKey) });
  const tills = {
    leaving: await startTill(world, "b", clientOf("ak_pos"), options),
    staying: await startTill(world, "a", clientOf("ak_a"), options),
  };
  const puller = startPuller(clientOf("ak_dist"));
  await sleep(2_000);
  const readFiles = () => Promise.all(["ak_dist", "ak_a"].map((key) => readStatements(clientOf(key))));
  const files = await closeDay(world, readFiles);
  const startedAt = performance.now();
  const kills = await splitUntilDone(primary, standby, options.killAfterMs);
  const splitMs = performance.now() - startedAt;
  await worker.stop();
  const workers = [await startWorker(t, folder, primary, world), await startWorker(t, folder, standby, world)];
  await sleep(3_000);
  const [leaving, staying] = await Promise.all([tills.leaving.stop(), tills.staying.stop()]);
  await compare(standby, "ten_b", leaving.ok);
  await compare(primary, "ten_a", staying.ok);
  if (String(await readFiles()) !== String(files)) throw new Error("the files of a closed day have changed");
  await puller.untilWhole();
  await Promise.all(workers.map(({ stop }) => stop()));
  const ok = leaving.ok.length + staying.ok.length;
  return { ok, kills, splitMs, gapMs: { leaving: leaving.gapMs, staying: staying.gapMs } };
}

async function startServing(t: Teardown, address: Address, { keys }: Scenario): Promise<string> {
  const { logger } = createStubLog("warn");
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, logger);
  const { url, stop } = await serve({ address, keys, limits: defaultLimits, listening, log: logger });
  t.teardown(stop);
  return url;
}

async function startWorker(t: Teardown, folder: string, address: Address, { masterKeyText }: Scenario) {
  const worker = await startLoggedProgram("work", folder, { ...environmentOf({ address, masterKeyText }) });
  t.teardown(() => worker.stop());
  return worker;
}

// Redeems one coupon after the other, and repeats each until it has an answer.
async function startTill(world: Scenario, side: "a" | "b", client: Client, { coupons, perSecond }: RoundOptions) {
  const { maker, template } = world[side];
  const merchant = merchantOf(side === "a" ? "ak_a" : "ak_pos");
  const used = perSecond * mostSeconds;
  const batch = await world.makeBatch(maker, template, Math.max(coupons / 2, used));
  const codes = batch.coupons.map(({ code }) => code).slice(0, used);
  const [ok, running]: [string[], Set<Promise<void>>] = [[], new Set()];
  let [isStopped, lastOkAt, gapMs] = [false, performance.now(), 0];

  async function redeem(coupon: string): Promise<void> {
    const body = { request_id: newRequestId(), coupon, merchant };
    for (;;) {
      const { status, json, text } = await client.post("/v1/coupons/redeem", body);
      if (status === 200) {
        gapMs = Math.max(gapMs, performance.now() - lastOkAt);
        lastOkAt = performance.now();
        return void ok.push(json.redemption);
      }
      if (status !== 503) throw new Error(`${status} ${text}`);
      await sleep(100);
    }
  }

  const pacing = (async () => {
    while (!isStopped && codes.length > 0) {
      const one = redeem(codes.pop()!);
      running.add(one);
      void one.finally(() => running.delete(one)).catch(() => {});
      await sleep(1_000 / perSecond);
    }
  })();
  return {
    async stop() {
      isStopped = true;
      await pacing;
      await Promise.all(running);
      return { ok, gapMs };
    },
  };
}

/** The files of all closed days. */
async function readStatements(client: Client): Promise<string[]> {
  const { json } = await client.get("/v1/reconciliations");
  const hrefs = json.reconciliations.flatMap((day: { files: { href: string }[] }) => day.files.map(({ href }) => href));
  return Promise.all(hrefs.map(async (href: string) => (await client.get(href)).text));
}

// Ends the day early, with the redemptions of two seconds. The worker makes the files.
async function closeDay(world: Scenario, readFiles: () => Promise<string[][]>): Promise<string[][]> {
  const psql = await world.openPsql({ triggers: false });
  await psql.run(closeOpenDays);
  return waitUntil("the files of a day", async () => {
    const files = await readFiles();
    return files.every(([detail = ""]) => detail.split("\n").length > 20) && files;
  });
}

async function splitUntilDone(old: Address, copy: Address, killAfterMs: number | null): Promise<number> {
  const args = ["src/coupon.ts", "cells", "split", "ten_b", "--to", "2", "--reason", "a round"];
  const env = { PATH: process.env["PATH"], DATABASE_URL: formatUrl(old), CELL_URL: formatUrl(copy) };
  for (let kills = 0; ;) {
    const splitter = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    splitter.stderr!.on("data", (chunk) => (errors += chunk));
    const timer =
      killAfterMs === null || kills > 0 ? undefined : setTimeout(() => splitter.kill("SIGKILL"), killAfterMs);
    const [code, signal] = (await once(splitter, "close")) as [number | null, string | null];
    clearTimeout(timer);
    if (code === 0) return kills;
    if (signal !== "SIGKILL") throw new Error(`the split failed: ${errors}`);
    kills += 1;
  }
}

async function compare(address: Address, tenant: string, ok: string[]): Promise<void> {
  const database = connect(address, { name: "coupon split", max: 1 });
  try {
    const rows = await database.rows<{ id: string; times: number }>(
      `select r.redemption_id::text as id, count(*)::int as times
       from core.redemption r join core.tenant t using (tenant_id) where t.external_id = $1 group by 1`,
      [tenant],
    );
    const stored = new Map(rows.map(({ id, times }) => [externalId("red", id), times]));
    const lost = ok.filter((id) => stored.get(id) !== 1);
    if (lost.length > 0 || stored.size !== new Set(ok).size)
      throw new Error(`${tenant}: ${lost.length} lost or doubled; ${stored.size} stored, ${ok.length} answered ok`);
    const broken = await database.rows<{ invariant: string }>("select invariant from report.invariants");
    if (broken.length > 0) throw new Error(`${tenant}: ${JSON.stringify(broken)}`);
  } finally {
    await database.end();
  }
}

type Pulled = { event_id: string };

// Pulls all the time, as a distributor does.
function startPuller(client: Client) {
  const ids: string[] = [];
  let [cursor, isStopped] = ["", false];
  const pulling = (async () => {
    while (!isStopped) {
      const { status, json } = await client.get(`/v1/events?limit=500${cursor === "" ? "" : `&cursor=${cursor}`}`);
      if (status === 200) {
        ids.push(...json.events.map(({ event_id }: Pulled) => event_id));
        cursor = json.next_cursor;
      }
      await sleep(100);
    }
  })();
  // What went wrong before is the reason.
  pulling.catch(() => {});
  return {
    /** A second puller that begins now gets the same. The invariants say that positions are 1 to N. */
    async untilWhole(): Promise<void> {
      const whole = async () => (await pullEvents<Pulled>(client, 1_000)).events.map(({ event_id }) => event_id);
      await waitUntil("the feed to be pulled", async () => (await whole()).length === ids.length, { withinMs: 60_000 });
      isStopped = true;
      await pulling;
      const again = await whole();
      if (again.some((id, index) => id !== ids[index]))
        throw new Error("the puller has another feed than the new cell");
    },
  };
}
