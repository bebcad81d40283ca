// Many writers of events at once, as processes of the service are: calls through gate.perform, in transactions that stay
// open between write and commit, some of them rolled back.
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../src/database.ts";
import { newRequestId, type Running } from "./service.ts";

// state: what the writers believe. A reversal that is under way lets another writer try to redeem: it waits for the row.
type Coupon = { lookup: string; state: "free" | "reversing" | { redemption: string } };
type Written = { eventId: string; coupon: Coupon; state: Coupon["state"] };
// Committed events, as their writers were told: the id, and when (performance.now()) the commit was answered.
export type Committed = Map<string, number>;

// Coupons that can be redeemed again and again, released to one feed.
export async function makeReissuable(service: Running, count: number): Promise<Coupon[]> {
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [{
    id: "tpl_again", name: "reissued", maker: "pty_a", currency: "EUR", discount: { type: "fixed", amount: 5 }, after_reversal: "reissued",
    valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" }] }] });
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_again", count);
  const rows = await service.owner.rows<{ lookup: string }>(
    "select c.lookup_hash::text as lookup from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1", [id]);
  return rows.map(({ lookup }) => ({ lookup, state: "free" }));
}

// A connection as a process of the service has one, that can be told when to commit.
export async function openTill(service: Running) {
  const session = openSession(service.address, { name: "coupon test writer", role: "coupon_api" });
  const [caller] = await session.rows<{ tenant_id: number; credential_id: number }>("select tenant_id, credential_id from gate.find_credential('ak_a')");
  type Row = { http_status: number; body: string };
  const send = (calls: { operation: string; args: object }[], isAlone: boolean) => {
    const sent = calls.map((call) => ({
      credential_id: caller!.credential_id, nonce: null, request_id: newRequestId(), idempotency_key: null, body_hash: "0".repeat(32), ...call,
    }));
    return session.rows<Row>("select http_status, body from gate.perform($1, $2::text::jsonb, $3) order by ordinal", [caller!.tenant_id, JSON.stringify(sent), isAlone]);
  };

  // Redeems what is free and reverses what is redeemed. A call that would wait, or comes too late, writes no event.
  async function use(coupons: Coupon[], isAlone: boolean): Promise<Written[]> {
    const calls = coupons.map((coupon) => {
      if (typeof coupon.state === "string") return { operation: "redeem", args: { coupon: coupon.lookup, merchant: "mch_a" } };
      const { redemption } = coupon.state;
      coupon.state = "reversing";
      return { operation: "reverse", args: { redemption } };
    });
    const rows = await send(calls, isAlone);
    return rows.flatMap(({ http_status, body }, index) => {
      if (http_status !== 200) return [];
      const { redemption, reversal } = JSON.parse(body) as { redemption: string; reversal?: string };
      return [{ eventId: `evt_${(reversal ?? redemption).slice(4)}`, coupon: coupons[index]!, state: reversal === undefined ? { redemption } : "free" as const }];
    });
  }

  async function end(how: "commit" | "rollback", written: Written[], committed: Committed): Promise<void> {
    await session.run(how);
    const now = performance.now();
    for (const { eventId, coupon, state } of how === "commit" ? written : []) {
      committed.set(eventId, now);
      coupon.state = state;
    }
  }

  return { session, send, use, end };
}

type Plan = { events: number; writers?: number; holdMs?: number; rolledBack?: number; perSecond?: number };

// Until so many events are committed. With perSecond they come evenly, one a transaction.
export async function write(service: Running, coupons: Coupon[], { events, writers = 8, holdMs = 50, rolledBack = 0.2, perSecond }: Plan): Promise<Committed> {
  const committed: Committed = new Map();
  const begin = performance.now();
  let started = 0;
  let isFailed = false;
  await Promise.all(Array.from({ length: writers }, async (_, writer) => {
    const till = await openTill(service);
    try {
      await run(till, writer);
    } catch (error) {
      isFailed = true;
      throw error;
    } finally {
      await till.session.end();
    }
  }));
  return committed;

  async function run(till: Awaited<ReturnType<typeof openTill>>, writer: number): Promise<void> {
    const mine = coupons.filter((_, index) => index % writers === writer);
    while (committed.size < events && !isFailed) {
      // Some meet at few coupons and wait for each other, most take many in one transaction.
      const isAlone = perSecond !== undefined || Math.random() < 0.3;
      const picked = perSecond !== undefined ? pick(mine, 1) : isAlone ? pick(coupons.slice(0, 20), 1) : pick(coupons, 1 + Math.random() * 12);
      if (perSecond !== undefined) await sleep(Math.max(0, begin + (started += 1) * (1_000 / perSecond) - performance.now()));
      await till.session.run("begin");
      const written = await till.use(picked, isAlone);
      await sleep(Math.random() * holdMs);
      await till.end(Math.random() < rolledBack ? "rollback" : "commit", written, committed);
    }
  }
}

function pick(coupons: Coupon[], count: number): Coupon[] {
  const picked = new Set<Coupon>();
  for (let index = 1; index <= count; index += 1) picked.add(coupons[Math.floor(Math.random() * coupons.length)]!);
  return [...picked];
}
