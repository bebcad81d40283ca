// Concurrent writers of events, as processes of the service are: they call gate.perform_calls in transactions that stay
// open between write and commit, and roll some of them back.
import { setTimeout as sleep } from "node:timers/promises";
import type { Scenario } from "./scenario.ts";
import { openGateSession, type GateCall, type GateRow } from "./sessions.ts";
import { template } from "./tenants.ts";

// What the writers know about a coupon. During a reversal another writer may try to redeem, and waits for the row.
type Coupon = { lookup: string; state: "unused" | "free" | "reversing" | { redemption: string } };
// again: coupons that are redeemed and reversed many times. once: coupons to void.
export type Stock = { again: Coupon[]; once: Coupon[] };
type Written = { name: string; keep: () => void; undo: () => void };
// The committed events by name, with the time of the commit's answer (performance.now()).
export type Committed = Map<string, number>;

// The name by which a writer recognizes its event. The answer to a void does not contain the event's ID.
export const nameOf = (event: { event_type: string; event_id: string; coupon_id: string }) =>
  event.event_type === "coupon.voided" ? event.coupon_id : event.event_id;

export async function makeStock(service: Scenario, { again, once }: { again: number; once: number }): Promise<Stock> {
  await service.apply({
    tenants: [
      {
        id: "ten_a",
        name: "A",
        variant: "A",
        templates: [template("tpl_again", "pty_a", { after_reversal: "reissued" })],
      },
    ],
  });
  const { id } = await service.makeBatch(service.a.maker, "tpl_again", again + once);
  const rows = await service.owner.rows<{ lookup: string }>(
    `select c.lookup_hash::text as lookup
     from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1`,
    [id],
  );
  const coupons = rows.map(({ lookup }, index): Coupon => ({ lookup, state: index < again ? "free" : "unused" }));
  return { again: coupons.slice(0, again), once: coupons.slice(again) };
}

// A connection like those of the service, which commits only when a test says so.
export async function openTill(service: Pick<Scenario, "address">) {
  const { session, send } = await openGateSession(service, "ak_a");

  // A call that would have to wait, or that comes too late, writes no event.
  async function use(coupons: Coupon[], isAlone: boolean): Promise<Written[]> {
    const calls = coupons.map(nextCall);
    const rows = await send(calls, isAlone);
    return rows.flatMap((row, index) => readWritten(row, coupons[index]!, calls[index]!));
  }

  async function end(how: "commit" | "rollback", written: Written[], committed: Committed): Promise<void> {
    await session.run(how);
    const now = performance.now();
    for (const { name, keep, undo } of written) {
      if (how === "rollback") {
        undo();
        continue;
      }
      committed.set(name, now);
      keep();
    }
  }

  return { session, send, use, end };
}

// Voids an unused coupon, redeems a free one, reverses a redeemed one.
function nextCall(coupon: Coupon): GateCall {
  const args = { coupon: coupon.lookup, merchant: "mch_a" };
  if (typeof coupon.state === "string") return { operation: coupon.state === "unused" ? "void" : "redeem", args };
  const { redemption } = coupon.state;
  coupon.state = "reversing";
  return { operation: "reverse", args: { redemption } };
}

function readWritten({ http_status, body }: GateRow, coupon: Coupon, { args }: GateCall): Written[] {
  // The redemption stays as it was.
  const undo = () => {
    if (coupon.state === "reversing" && "redemption" in args) coupon.state = { redemption: args.redemption as string };
  };
  if (http_status === null) undo();
  if (http_status !== 200) return [];
  const { coupon_id, redemption, reversal } = JSON.parse(body) as {
    coupon_id: string;
    redemption?: string;
    reversal?: string;
  };
  if (redemption === undefined) return [{ name: coupon_id, undo, keep: () => {} }];
  const keep = () => {
    coupon.state = reversal === undefined ? { redemption } : "free";
  };
  return [{ name: `evt_${(reversal ?? redemption).slice(4)}`, undo, keep }];
}

type Plan = { events: number; writers?: number; holdMs?: number; rolledBack?: number; perSecond?: number };

// Writes until `events` events are committed. With perSecond they come at a steady rate, one per transaction.
export async function write(
  service: Scenario,
  stock: Stock,
  { events, writers = 8, holdMs = 50, rolledBack = 0.2, perSecond }: Plan,
): Promise<Committed> {
  const committed: Committed = new Map();
  const begin = performance.now();
  let started = 0;
  let isFailed = false;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      const till = await openTill(service);
      try {
        while (committed.size < events && !isFailed) await writeOnce(till);
      } catch (error) {
        isFailed = true;
        throw error;
      } finally {
        await till.session.end();
      }
    }),
  );
  return committed;

  // Some writers compete for few coupons and wait for each other. Most write many events in one transaction.
  async function writeOnce(till: Awaited<ReturnType<typeof openTill>>): Promise<void> {
    if (perSecond !== undefined)
      await sleep(Math.max(0, begin + (started += 1) * (1_000 / perSecond) - performance.now()));
    const isAlone = perSecond === undefined && Math.random() < 0.3;
    await till.session.run("begin");
    const written = await till.use(
      isAlone ? [choose(stock.again.slice(0, 20))] : pick(stock, perSecond === undefined ? 1 + Math.random() * 12 : 1),
      isAlone,
    );
    await sleep(Math.random() * holdMs);
    await till.end(Math.random() < rolledBack ? "rollback" : "commit", written, committed);
  }
}

const choose = <T>(list: T[]): T => list[Math.floor(Math.random() * list.length)]!;

// One in four coupons is redeemed or reversed, the others are voided.
function pick({ again, once }: Stock, count: number): Coupon[] {
  const picked = new Set<Coupon>();
  for (let index = 1; index <= count; index += 1)
    picked.add((Math.random() < 0.75 ? once.pop() : undefined) ?? choose(again));
  return [...picked];
}
