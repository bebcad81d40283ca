// Rounds of failovers under a load of redemptions over HTTP, through one `serve` and one `work` that run through all
// rounds. After each promotion, every redemption that was answered ok must be in the promoted database.
import { setTimeout as sleep } from "node:timers/promises";
import { addCell } from "../../../src/commands/router-database.ts";
import type { Address } from "../../../src/config/database-address.ts";
import { connect } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { externalId } from "../../../src/formats/id.ts";
import { migrate } from "../../../src/migration/migrate.ts";
import { createClient } from "../../support/client.ts";
import { startLoggedProgram } from "../../support/logged-program.ts";
import { environmentOf } from "../../support/program.ts";
import { findRouterBinaries, howToInstall, startRouterServer } from "../../support/router.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Teardown } from "../../support/scenario.ts";
import { secretOf } from "../../support/tenants.ts";
import { waitAtMost, waitUntil } from "../../support/wait-until.ts";
import type { Cluster } from "./cluster.ts";

export type RoundOptions = { rounds: number; clients: number; hasRouter: boolean; print(line: string): void };
export type Totals = {
  answers: number;
  ok: number;
  lost: number;
  servedMs: number[];
  failures: string[];
};

/** What happens before the kill. */
type Kind = "kill" | "cancel" | "time out";
const kinds: Kind[] = ["kill", "cancel", "time out"];
const servedWithinMs = 10_000;
const workedWithinMs = 15_000;
const couponsPerRound = 3_000;
const answersBeforeFault = 50;
const patienceMs = 60_000;
// Of a till, on average.
const pauseMs = 60;

type Run = Awaited<ReturnType<typeof prepare>> & { cluster: Cluster; print: RoundOptions["print"]; totals: Totals };

export async function runRounds(
  t: Teardown,
  cluster: Cluster,
  logFolder: string,
  { rounds, clients, hasRouter, print }: RoundOptions,
): Promise<Totals> {
  const totals: Totals = { answers: 0, ok: 0, lost: 0, servedMs: [], failures: [] };
  const run = {
    ...(await prepare(t, cluster.address, logFolder, { rounds, clients, hasRouter })),
    cluster,
    print,
    totals,
  };
  for (let number = 1; number <= rounds; number += 1) await runRound(run, number);
  const { tills, owner } = run;
  await tills.stop();
  const ids = await readIds(owner);
  totals.ok = tills.ok.size;
  totals.answers = tills.answers();
  totals.lost = [...tills.ok].filter((id) => !ids.has(id)).length;
  const unanswered = [...ids].filter((id) => !tills.ok.has(id)).length;
  if (totals.lost > 0) fail(run, `${totals.lost} redemptions that were answered ok are gone`);
  if (unanswered > 0) fail(run, `${unanswered} redemptions were never answered ok`);
  const broken = await owner.rows<{ invariant: string }>("select invariant from report.invariants");
  for (const { invariant } of broken) fail(run, `the invariant ${invariant} is broken`);
  for (const name of run.ended) fail(run, `${name} ended`);
  return totals;
}

async function prepare(
  t: Teardown,
  address: Address,
  logFolder: string,
  { rounds, clients, hasRouter }: Pick<RoundOptions, "rounds" | "clients" | "hasRouter">,
) {
  await migrate(address);
  const owner = connect(address, { name: "coupon failover", max: 2 });
  t.teardown(() => owner.end());
  await owner.rows("create role serve login in role coupon_api");
  await owner.rows("create role work login in role coupon_worker");
  const world = await scenario(t, { on: { address } });
  const { maker, template } = world.a;
  const codes: string[] = [];
  while (codes.length < rounds * couponsPerRound) {
    const { coupons } = await world.makeBatch(maker, template, Math.min(20_000, rounds * couponsPerRound));
    codes.push(...coupons.map(({ code }) => code));
  }
  const env = (from: Address) => ({
    ...environmentOf({ address: from, masterKeyText: world.masterKeyText }),
    LOG_LEVEL: "info",
  });
  const served = hasRouter ? await startRouter(t, address) : { ...address, user: "serve" };
  const api = await startLoggedProgram("serve", logFolder, env(served));
  const worker = await startLoggedProgram("work", logFolder, env({ ...address, user: "work" }));
  const ended: string[] = [];
  void api.ended.then(() => ended.push("serve"));
  void worker.ended.then(() => ended.push("work"));
  t.teardown(() => Promise.all([api.stop(), worker.stop()]));
  const tills = startTills(api.url, codes, clients);
  t.teardown(tills.abort);
  const submitter = createClient({ url: api.url, accessKey: "ak_a", secret: secretOf("ak_a") });
  async function submit(): Promise<string> {
    const body = { request_id: newRequestId(), template, total_count: 1 };
    const accepted = await waitUntil("a batch to be accepted", async () => {
      const { status, json } = await submitter.post("/v1/batches", body);
      return status === 200 && json;
    });
    return accepted.batch.external_id;
  }
  return { owner, ended, tills, submit };
}

async function startRouter(t: Teardown, cell: Address): Promise<Address> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  const router = await startRouterServer(binaries);
  t.teardown(router.stop);
  await addCell(router.address, 1, { ...cell, user: "serve" });
  return router.address;
}

async function runRound(run: Run, number: number): Promise<void> {
  const { cluster, tills, owner, print, totals } = run;
  const kind = cluster.cutStandbyOff === null ? "kill" : kinds[(number - 1) % kinds.length]!;
  const before = { ok: tills.ok.size, unknown: tills.unknown() };
  await waitUntil("answers before the fault", () => tills.ok.size >= before.ok + answersBeforeFault);
  await breakOff(cluster, kind);
  await cluster.kill();
  const unknown = tills.unknown() - before.unknown;
  tills.reset();
  const since = await cluster.promote();
  const firstOkAt = await waitAtMost(patienceMs, tills.firstOkAt);
  const servedMs = firstOkAt === null ? Infinity : firstOkAt - since;
  const answered = [...tills.ok];
  const ids = await waitUntil("the promoted database", () => readIds(owner).catch(() => null));
  const lost = answered.filter((id) => !ids.has(id)).length;
  const workedMs = await waitForWork(run, since);
  print(
    `${String(number).padStart(3)}  ${kind.padEnd(8)}  ${unknown} unknown before the kill; served again after ` +
      `${Math.round(servedMs)} ms, worked after ${Math.round(workedMs)} ms; lost ok ${lost}`,
  );
  totals.servedMs.push(servedMs);
  if (servedMs > servedWithinMs) fail(run, `calls must be served within ${servedWithinMs} ms`);
  if (workedMs > workedWithinMs) fail(run, `the worker must work within ${workedWithinMs} ms`);
  await cluster.rebuild();
}

function fail({ totals, print }: Run, what: string): void {
  totals.failures.push(what);
  print(`  FAILED: ${what}`);
}

async function readIds(owner: Database): Promise<Set<string>> {
  const rows = await owner.rows<{ id: string }>("select redemption_id as id from core.redemption");
  return new Set(rows.map(({ id }) => externalId("red", id)));
}

async function breakOff(cluster: Cluster, kind: Kind): Promise<void> {
  if (kind === "kill") return;
  await cluster.cutStandbyOff!();
  const until = performance.now() + (kind === "cancel" ? 2_000 : 6_000);
  while (performance.now() < until) {
    await sleep(150);
    if (kind === "cancel") await cluster.cancelWaits();
  }
}

// After how many milliseconds the worker has given every event its position, and has minted a new batch. That one is a
// job of graphile-worker, which has its own connections.
async function waitForWork({ owner, submit }: Run, since: number): Promise<number> {
  const batch = await submit();
  const hasWorked = async () => {
    const [row] = await owner.rows<{ is_done: boolean }>(
      `select (select s.high_seq from core.sequencer s) >= (select max(e.event_seq) from rules.event e)
              and (select b.status <> 'PENDING' from core.batch b where b.external_id = $1) as is_done`,
      [batch],
    );
    return row!.is_done;
  };
  const found = await waitAtMost(workedWithinMs, () => hasWorked().catch(() => false), { everyMs: 50 });
  return found === null ? Infinity : performance.now() - since;
}

// Each till redeems one coupon after the other, and repeats a call until its outcome is known.
function startTills(url: string, codes: string[], count: number) {
  const ok = new Set<string>();
  const client = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
  let [isStopping, isAborted, unknown, answers] = [false, false, 0, 0];
  let [resetAt, firstOkAt]: [number, number | null] = [0, null];

  async function redeem(coupon: string): Promise<void> {
    const body = { request_id: newRequestId(), coupon, merchant: "mch_a", order_amount: 20 };
    for (;;) {
      const sentAt = performance.now();
      const { status, json, text } = await client.post("/v1/coupons/redeem", body);
      answers += 1;
      if (status === 200) {
        ok.add(json.redemption);
        // One that was sent before the reset may be an answer of the old primary.
        if (sentAt >= resetAt) firstOkAt ??= performance.now();
        return;
      }
      if (status !== 503 && status !== 409) throw new Error(`redeem: ${status} ${text}`);
      if (json.code !== "UNAVAILABLE" && json.code !== "REQUEST_IN_PROGRESS") throw new Error(`redeem: ${text}`);
      unknown += 1;
      if (isAborted) return;
      await sleep(100);
    }
  }
  const running = Promise.all(
    Array.from({ length: count }, async () => {
      while (!isStopping) {
        await redeem(codes.pop()!);
        await sleep(pauseMs * 2 * Math.random());
      }
    }),
  );
  running.catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  return {
    /** Redemptions that were answered ok. */
    ok,
    unknown: () => unknown,
    answers: () => answers,
    firstOkAt: () => firstOkAt,
    reset() {
      resetAt = performance.now();
      firstOkAt = null;
    },
    /** Once each outcome is known. */
    async stop() {
      isStopping = true;
      await running;
    },
    abort() {
      isStopping = isAborted = true;
      return running;
    },
  };
}
