// The contenders beside the floor: function calls gate.perform, the others send what a till sends over HTTP. Their
// rounds take the same time.
import { openSession } from "../../src/database/connect.ts";
import type { CouponPool } from "./coupon-pool.ts";
import { startChildProcess } from "./child-process.ts";
import type { Request, LoadJob, LoadResult } from "./load.ts";
import { createDriverLoad, createSqlLoad, warmSeconds, type Clock } from "./pgbench.ts";
import type { Environment } from "./environment.ts";
import { readConnections } from "./settings.ts";
import { accessKey, secret } from "./tenant.ts";
import { lockAndConfirm, queryRequest, redeemRequest, redeemCall, type Coupon } from "./requests.ts";

export type Round = { count: number; seconds: number; loadCpuSeconds: number; latencies?: Float64Array[] };
export type Contender = {
  // Whether each counted call redeems a coupon.
  isRedeeming: boolean;
  // Whether calls also run before and after the measured time, so that their costs are not measured to the last one.
  hasMargins: boolean;
  // A checkpoint is made before each round, so that the first change of each page logs the whole page.
  isAfterCheckpoint?: boolean;
  // Draws coupons and signs requests, outside the measured time.
  prepare(seconds: number): Promise<(clock: Clock) => Promise<Round>>;
  end(): void;
};
export type Loader = ReturnType<typeof startLoader>;

const functionConnections = 32;
// Assumed for the first round, before a rate is known.
const firstRate = 4_000;
// More than one connection can achieve.
const singleRate = 3_000;

export const startLoader = () => startChildProcess<LoadJob, LoadResult>("load.ts");

// Runs gate.perform with one redeem per transaction. The calls are ready in a table, so that only the function is
// measured.
export async function createFunction(environment: Environment, pool: CouponPool): Promise<Contender> {
  const session = openSession(environment.address, { name: "coupon bench function" });
  await session.run(`
    create schema bench;
    create table bench.call (n int primary key, tenant_id int not null, request_id text not null, calls jsonb not null);
    create sequence bench.next;
    grant usage on schema bench to coupon_api, coupon_owner;
    grant select on bench.call to coupon_api, coupon_owner;
    grant insert on bench.call to coupon_owner;
    grant usage on sequence bench.next to coupon_api;
    grant select on sequence bench.next to coupon_owner`);
  await session.end();
  const statement = `
    select p.http_status, p.body, p.is_replay
    from bench.call c, gate.perform(c.tenant_id, c.calls, false) p
    where c.n = (select nextval('bench.next'))`;
  const sqlLoad = createSqlLoad({ ...environment, role: "coupon_api", connections: functionConnections });
  let [queued, used, rate] = [0, 0, firstRate];

  async function queue(coupons: Coupon[]): Promise<void> {
    for (let at = 0; at < coupons.length; at += 1_000) {
      const calls = coupons
        .slice(at, at + 1_000)
        .map((coupon) => redeemCall(coupon, environment.credentialId, environment.keys));
      await environment.owner.rows(
        `insert into bench.call (n, tenant_id, request_id, calls)
         select $1::int + c.ordinality, $2, c.value ->> 'request_id', jsonb_build_array(c.value)
         from jsonb_array_elements($3::text::jsonb) with ordinality c`,
        [queued, environment.tenantId, JSON.stringify(calls)],
      );
      queued += calls.length;
    }
  }

  async function checkAnswers(count: number): Promise<void> {
    const [row] = await environment.owner.rows<{ last: number; others: number }>(
      `select (select last_value from bench.next)::int as last, count(*)::int as others
       from bench.call c
       left join core.request q on q.tenant_id = c.tenant_id and q.caller_id = 0 and q.request_id = c.request_id
       where c.n > $1 and c.n <= $2 and q.http_status is distinct from 200`,
      [used, used + count],
    );
    if (row!.last !== used + count || row!.last > queued)
      throw new Error(`function: ${count} calls made, ${row!.last - used} of ${queued - used} queued calls used`);
    if (row!.others > 0) throw new Error(`function: ${row!.others} of ${count} calls were not answered 200`);
  }

  return {
    isRedeeming: true,
    hasMargins: true,
    async prepare(seconds) {
      await queue(await pool.draw(Math.max(0, enough(rate, warmSeconds + seconds + 1) - (queued - used))));
      return async (clock) => {
        const round = await sqlLoad.run([statement], seconds, clock);
        await checkAnswers(round.total);
        used += round.total;
        rate = round.count / round.seconds;
        return round;
      };
    },
    end: () => sqlLoad.end(),
  };
}

// The same call on one connection, by the driver of the service, with its latency.
export function createSingleFunction(environment: Environment, pool: CouponPool): Contender {
  const { tenantId, credentialId, keys } = environment;
  const sqlLoad = createDriverLoad({ ...environment, role: "coupon_api", connections: 1 });
  const statement = "select http_status, body, is_replay from gate.perform($1, $2::text::jsonb, $3)";
  return {
    isRedeeming: true,
    hasMargins: true,
    async prepare(seconds) {
      const coupons = await pool.draw(singleRate * (warmSeconds + seconds));
      const params = coupons.map((coupon) => [
        tenantId,
        JSON.stringify([redeemCall(coupon, credentialId, keys)]),
        false,
      ]);
      return async (clock) => {
        const round = await sqlLoad.run([statement], seconds, clock, params);
        pool.giveBack(coupons.slice(round.total));
        return round;
      };
    },
    end: () => sqlLoad.end(),
  };
}

type HttpOptions = {
  kind?: "redeem" | "lock-confirm" | "query";
  connections?: number;
  // Requests are due at this rate; otherwise each connection sends its next request when it has its answer.
  perSecond?: number;
  // How many coupons a round may use, where they are scarce.
  most?: number;
  isAfterCheckpoint?: boolean;
};

export function createHttp(environment: Environment, pool: CouponPool, options: HttpOptions = {}): Contender {
  const {
    kind = "redeem",
    connections = readConnections(),
    perSecond,
    most = Infinity,
    isAfterCheckpoint = false,
  } = options;
  const loader = startLoader();
  const chainOf = {
    redeem: (coupon: Coupon): Request[] => [redeemRequest(coupon)],
    "lock-confirm": lockAndConfirm,
    query: (coupon: Coupon) => [queryRequest(coupon)],
  }[kind];
  let rate = connections === 1 ? singleRate : firstRate;
  return {
    isRedeeming: kind !== "query",
    hasMargins: false,
    isAfterCheckpoint,
    async prepare(seconds) {
      const wanted = perSecond === undefined ? enough(rate, seconds) : perSecond * seconds;
      const coupons = await pool.draw(Math.min(most, wanted));
      const go = await loader.prepare({
        url: environment.url,
        accessKey,
        secret,
        connections,
        seconds,
        ...(perSecond !== undefined && { perSecond }),
        chains: coupons.map(chainOf),
      });
      return async (clock) => {
        await clock.begin();
        const { count, seconds: took, cpuSeconds, latencies } = await go();
        await clock.end();
        pool.giveBack(kind === "query" ? coupons : coupons.slice(count));
        rate = count / took;
        return { count, seconds: took, loadCpuSeconds: cpuSeconds, latencies };
      };
    },
    end: () => loader.end(),
  };
}

// Enough coupons that time ends the round.
function enough(rate: number, seconds: number): number {
  return Math.ceil(rate * seconds * 1.5) + 1_000;
}
