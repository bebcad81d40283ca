// Many writers of events at once, as processes of the service are: calls through gate.perform, in transactions that stay
// open between write and commit, some of them rolled back.
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../src/database/connect.ts";
import { newRequestId, type Running } from "./service.ts";

// What the writers believe. A reversal that is under way lets another writer try to redeem: it waits for the row.
type Coupon = { lookup: string; state: "unused" | "free" | "reversing" | { redemption: string } };
// `again`: coupons that are redeemed and reversed, many times. `once`: coupons to be voided.
export type Stock = { again: Coupon[]; once: Coupon[] };
type Written = { name: string; keep: () => void; undo: () => void };
// Events whose commit was answered, by name, and when that was (performance.now()).
export type Committed = Map<string, number>;

// What the writer of an event can tell it by: of a voiding nobody is told the event's id.
export const nameOf = (event: { event_type: string; event_id: string; coupon_id: string }) =>
  event.event_type === "coupon.voided" ? event.coupon_id : event.event_id;

export async function makeStock(service: Running, { again, once }: { again: number; once: number }): Promise<Stock> {
  await service.apply({
    tenants: [
      {
        id: "ten_a",
        name: "A",
        variant: "A",
        templates: [
          {
            id: "tpl_again",
            name: "reissued",
            maker: "pty_a",
            currency: "EUR",
            discount: { type: "fixed", amount: 5 },
            after_reversal: "reissued",
            valid_from: "2020-01-01T00:00:00Z",
            valid_to: "2099-01-01T00:00:00Z",
          },
        ],
      },
    ],
  });
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_again", again + once);
  const rows = await service.owner.rows<{ lookup: string }>(
    "select c.lookup_hash::text as lookup from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1",
    [id],
  );
  const coupons = rows.map(({ lookup }, index): Coupon => ({ lookup, state: index < again ? "free" : "unused" }));
  return { again: coupons.slice(0, again), once: coupons.slice(again) };
}

// A connection as a process of the service has one, that can be told when to commit.
export async function openTill(service: Running) {
  const session = openSession(service.address, { name: "coupon test writer", role: "coupon_api" });
  const [caller] = await session.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential('ak_a')",
  );
  type Row = { http_status: number | null; body: string };
  const send = (calls: { operation: string; args: object; body_hash?: null }[], isAlone: boolean) => {
    const sent = calls.map((call) => ({
      credential_id: caller!.credential_id,
      nonce: null,
      request_id: newRequestId(),
      idempotency_key: null,
      body_hash: "0".repeat(16),
      ...call,
    }));
    return session.rows<Row>("select http_status, body from gate.perform($1, $2::text::jsonb, $3) order by ordinal", [
      caller!.tenant_id,
      JSON.stringify(sent),
      isAlone,
    ]);
  };

  // Voids what is unused, redeems what is free, reverses what is redeemed. A call that would have to wait, or comes too
  // late, writes no event.
  async function use(coupons: Coupon[], isAlone: boolean): Promise<Written[]> {
    const calls = coupons.map((coupon) => {
      const args = { coupon: coupon.lookup, merchant: "mch_a" };
      if (typeof coupon.state === "string") return { operation: coupon.state === "unused" ? "void" : "redeem", args };
      const { redemption } = coupon.state;
      coupon.state = "reversing";
      return { operation: "reverse", args: { redemption } };
    });
    const rows = await send(calls, isAlone);
    return rows.flatMap(({ http_status, body }, index): Written[] => {
      const coupon = coupons[index]!;
      const { args } = calls[index]!;
      // Nothing happened to the redemption after all.
      const undo = () => {
        if (coupon.state === "reversing" && "redemption" in args) coupon.state = { redemption: args.redemption };
      };
      if (http_status === null) undo();
      if (http_status !== 200) return [];
      const { coupon_id, redemption, reversal } = JSON.parse(body) as {
        coupon_id?: string;
        redemption: string;
        reversal?: string;
      };
      if (coupon_id !== undefined) return [{ name: coupon_id, undo, keep: () => {} }];
      return [
        {
          name: `evt_${(reversal ?? redemption).slice(4)}`,
          undo,
          keep: () => {
            coupon.state = reversal === undefined ? { redemption } : "free";
          },
        },
      ];
    });
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

type Plan = { events: number; writers?: number; holdMs?: number; rolledBack?: number; perSecond?: number };

// Until so many events are committed. With perSecond they come evenly, one a transaction.
export async function write(
  service: Running,
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

  // Some meet at few coupons and wait for each other, most take many in one transaction.
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

// One in four to be redeemed or reversed.
function pick({ again, once }: Stock, count: number): Coupon[] {
  const picked = new Set<Coupon>();
  for (let index = 1; index <= count; index += 1)
    picked.add((Math.random() < 0.75 ? once.pop() : undefined) ?? choose(again));
  return [...picked];
}
