// What distributors download: statements across real midnights under load, and the addresses of a tenant's statements
// when a second distributor joins.
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { verify } from "../../../src/commands/statements.ts";
import { readConfig } from "../../../src/config/config.ts";
import { createLog } from "../../../src/common/log.ts";
import { work } from "../../../src/work.ts";
import {
  dateOf,
  listStatements,
  manyDistributors,
  midnightOffset,
  moveToNoon,
  noonDate,
  openBooks,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import type { Caller, Coupon } from "../../support/caller.ts";
import { arrangeBefore, untilPast } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { beginRequest } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";

type Midnights = Map<string, number>;

/** Two distributors share each midnight, one second after the midnight of the previous pair. */
async function setMidnights(world: Scenario, parties: string[], first: number): Promise<Midnights> {
  const midnights: Midnights = new Map();
  for (const [index, party] of parties.entries()) {
    const midnight = first + Math.floor(index / 2);
    midnights.set(party, midnight);
    await setZone(world, party, zoneOf(midnightOffset(midnight)));
  }
  return midnights;
}

/** The local dates before and after a midnight. */
function datesAround(midnight: number): [string, string] {
  const local = midnight + midnightOffset(midnight);
  return [dateOf(local - 1), dateOf(local)];
}

/** Redeems at a rate per second, and reverses each tenth redemption, until end() is called. */
function startRedeeming(tills: Caller[], coupons: Coupon[], rate: number) {
  const stopping = new AbortController();
  const startedAt = performance.now();
  let made = 0;
  const redeeming = tills.map(async ({ ok }) => {
    for (let coupon = coupons.pop(); coupon !== undefined && !stopping.signal.aborted; coupon = coupons.pop()) {
      await ok.redeem(coupon);
      made += 1;
      if (made % 10 === 0) await ok.reverse(coupon);
      await sleep(Math.max(0, (made / rate) * 1000 - (performance.now() - startedAt)));
    }
  });
  return {
    async end(): Promise<void> {
      stopping.abort();
      await Promise.all(redeeming);
    },
  };
}

const listReady = async (world: Scenario) => (await listStatements(world)).filter(({ is_ready }) => is_ready);

/** Two workers. Returns the function that stops them. */
async function startWorkers(t: Test, { address, keys }: Scenario): Promise<() => Promise<unknown>> {
  const parts = { address, keys, config: readConfig({}), log: createLog("silent") };
  const workers = [await work(parts), await work(parts)];
  const stop = () => Promise.all(workers.map((worker) => worker.stop()));
  t.teardown(stop);
  return stop;
}

t.test("across midnights, every entry is in exactly one statement and closed statements never change", async (t) => {
  const { tenant, parties } = manyDistributors(6);
  const world = await scenario(t, { file: { tenants: [tenant] } });
  const coupons = await openBooks(world, parties, 80);
  // Two calls that run over the midnight of their distributor: one for as long as a call may take, one far longer.
  const [early, late] = parties as [string, string];
  const hold = (party: string) =>
    beginRequest(world, "ak_many", "redeem", {
      request_id: newRequestId(),
      coupon: coupons.get(party)!.pop()!.code,
      merchant: "mch_many",
    });
  const { first, midnights, commitEarly, commitLate } = await arrangeBefore(
    world,
    async (moment) => {
      const first = Math.ceil(Date.parse(moment) / 1000);
      const midnights = await setMidnights(world, parties, first);
      return { first, midnights, commitEarly: await hold(early), commitLate: await hold(late) };
    },
    (held) => Promise.all([held.commitEarly("rollback"), held.commitLate("rollback")]),
  );
  const tills = ["mch_many", "mch_other"].flatMap((merchant) => Array<Caller>(4).fill(world.as("ak_many", merchant)));
  const pool = [...coupons.values()].flat().sort(() => Math.random() - 0.5);
  const redeeming = startRedeeming(tills, pool, 40);
  // Only now, because a worker opens a book on the day that its distributor's zone has then.
  const stopWorkers = await startWorkers(t, world);
  await untilPast(world, new Date((first + 2) * 1000).toISOString());
  await commitEarly("commit");
  // Its day closes 5 s after the midnight. A busy machine may have missed that.
  const [commit] = await world.owner.rows<{ is_early: boolean }>(
    "select clock_timestamp() < to_timestamp($1) as is_early",
    [first + 5],
  );
  await waitUntil("the statement of the late call's distributor", async () =>
    (await listReady(world)).some(({ distributor }) => distributor === late),
  );
  await commitLate("commit");
  await waitUntil("the first statements", async () => (await listReady(world)).length === parties.length);
  await redeeming.end();
  const firstDays = await listReady(world);

  await waitUntil("every entry to be posted", async () => {
    const unposted = await world.owner.rows(
      "select from core.ledger_entry l where not exists (select from rules.posting p where p.entry_id = l.entry_id)",
    );
    return unposted.length === 0;
  });
  await stopWorkers();

  const verdicts = await Array.fromAsync(verify(world.admin));
  t.strictSame(
    verdicts.flatMap(({ statement, differences }) => differences.map((difference) => `${statement}: ${difference}`)),
    [],
    "detail = summary = the stored checksums",
  );
  t.strictSame(await listReady(world), firstDays, "closed statements are unchanged");
  const entries = await world.owner.rows<{ distributor: string; date: string; recorded: number }>(
    `select l.distributor, p.business_date::text as date, extract(epoch from l.recorded_at)::float as recorded
     from report.ledger l left join rules.posting p on p.entry_id = l.entry_key`,
  );
  const onOtherDay = entries.filter(({ distributor, date, recorded }) => {
    const midnight = midnights.get(distributor)!;
    return date !== datesAround(midnight)[recorded < midnight ? 0 : 1];
  });
  t.strictSame(
    onOtherDay.map(({ distributor }) => distributor).filter((one) => one !== early || commit!.is_early),
    [late],
    "each on the day it was recorded, except the late one, whose day was already closed",
  );
});

t.test("when a second distributor joins, closed days keep their address and later days need a name", async (t) => {
  const { tenant, parties } = manyDistributors(2);
  const [first, second] = parties as [string, string];
  const world = await scenario(t, { file: { tenants: [tenant] }, http: true });
  const endDays = async (days: number) => {
    for (const party of parties) await moveToNoon(world, party, days);
    await world.steps.close();
  };
  const download = async (date: string) => {
    const path = `/v1/reconciliations/${date}/detail`;
    const queries = ["", `?distributor=${first}`, `?distributor=${second}`];
    const replies = await Promise.all(queries.map((query) => world.as("ak_many").get(path + query)));
    return replies.map(({ status, headers }) => headers["content-disposition"] ?? status);
  };
  const fileOf = (date: string, party: string) => `attachment; filename="detail-${date}-${party}.csv"`;
  await endDays(0);
  await openBooks(world, [first], 1);
  await world.steps.sequence();
  await endDays(1);
  await openBooks(world, [second], 1);
  await world.steps.sequence();
  await endDays(2);
  const [day, next] = [noonDate(), noonDate(1)];
  t.strictSame(await download(day), [fileOf(day, first), fileOf(day, first), 404]);
  t.strictSame(await download(next), [422, fileOf(next, first), fileOf(next, second)]);
});
