// The callers of a usual tenant, and its coupons in every state. Calls, provisioning and patches of the administrator
// bring them there; only the end of a lock is written to its row, because nobody waits for it.
import type { Database } from "../../src/database/types.ts";
import type { State, Variant } from "../db/api/states.ts";
import type { Caller, Coupon } from "./caller.ts";
import { template as makeTemplate } from "./tenants.ts";

/** isOver: the validity ended years ago. */
export type BatchOptions = { isReleased?: boolean; isOver?: boolean; distributor?: string };
export type Batch = { id: string; coupons: Coupon[] };

/** What a scene needs of its scenario. */
export type SceneParts = {
  owner: Database;
  admin: Database;
  as(accessKey: string): Caller;
  apply(file: unknown): Promise<unknown>;
  makeBatch(by: Caller, template: string, count: number, options?: BatchOptions): Promise<Batch>;
};

export type Scene = {
  variant: Variant;
  tenant: string;
  /** Submits and releases batches. */
  maker: Caller;
  distributor: Caller;
  /** In Variant B the tills belong to two parties: the merchant's delegate, and the merchant. */
  till: Caller;
  otherTill: Caller;
  merchant: string;
  distributorParty: string;
  /** 5.00 EUR off, always valid. */
  template: string;
  /** Adds a template with these terms, and returns its ID. */
  addTemplate(terms: object): Promise<string>;
  /** New coupons in a state, by default ISSUED, of the usual template or of another. */
  makeCoupons(count: number, state?: State, template?: string): Promise<Coupon[]>;
  endLock(coupon: Coupon): Promise<void>;
  /** Ends the validity of a coupon, as a patch of the administrator. */
  expire(coupon: Coupon): Promise<void>;
};

const usual = {
  A: { tenant: "ten_a", template: "tpl_fixed", merchant: "mch_a", makerParty: "pty_a", distributorParty: "pty_a" },
  B: { tenant: "ten_b", template: "tpl_b", merchant: "mch_b", makerParty: "pty_maker", distributorParty: "pty_dist" },
};
const keysOf = {
  A: { maker: "ak_a", distributor: "ak_a", till: "ak_a", otherTill: "ak_a_second" },
  B: { maker: "ak_maker", distributor: "ak_dist", till: "ak_pos", otherTill: "ak_shop" },
};

export function createScene(parts: SceneParts, variant: Variant): Scene {
  const { makerParty, ...names } = usual[variant];
  const { tenant, distributorParty } = names;
  let templates = 0;

  async function addTemplate(terms: object): Promise<string> {
    const id = `tpl_more${(templates += 1)}`;
    const distributor = variant === "B" ? { distributor: distributorParty } : {};
    const added = makeTemplate(id, makerParty, { ...distributor, ...terms });
    await parts.apply({ tenants: [{ id: tenant, name: variant, variant, templates: [added] }] });
    return id;
  }

  const callers = Object.fromEntries(
    Object.entries(keysOf[variant]).map(([name, key]) => [name, parts.as(key)]),
  ) as Record<keyof (typeof keysOf)["A"], Caller>;
  const steps = createSteps(parts, { variant, tenant, ...callers });
  const ways = waysTo(steps);

  async function makeCoupons(count: number, state: State = "ISSUED", template?: string): Promise<Coupon[]> {
    const { terms = null, isReleased = true, path = [], stop } = ways[state];
    const from = template ?? (terms === null ? names.template : await addTemplate(terms));
    const { id, coupons } = await parts.makeBatch(callers.maker, from, count, { isReleased });
    await Promise.all(
      coupons.map(async (coupon) => {
        for (const step of path) await step(coupon);
      }),
    );
    if (stop !== undefined) await callers.maker.ok[stop](id);
    return coupons;
  }

  return { variant, ...names, ...callers, addTemplate, makeCoupons, endLock: steps.endLock, expire: steps.expire };
}

type Step = (coupon: Coupon) => Promise<unknown>;
type Acting = Pick<Scene, "variant" | "tenant" | "till" | "otherTill">;

function createSteps({ owner, admin }: Pick<SceneParts, "owner" | "admin">, by: Acting) {
  const { till, otherTill, variant, tenant } = by;
  return {
    lock: (coupon: Coupon) => till.ok.lock(coupon, { order_amount: 20 }),
    redeem: (coupon: Coupon) => till.ok.redeem(coupon, { order_amount: 20 }),
    confirm: (coupon: Coupon) => till.ok.confirm(coupon),
    cancel: (coupon: Coupon) => till.ok.cancel(coupon),
    reverse: (coupon: Coupon) => till.ok.reverse(coupon),
    void: (coupon: Coupon) => till.ok.void(coupon),
    // In Variant A both tills are one caller, which must not know this lock. In B the other may even know its ID.
    async lockElsewhere(coupon: Coupon) {
      const { lockRequestId } = coupon;
      await otherTill.ok.lock(coupon, { order_amount: 20 });
      if (variant === "A") coupon.lockRequestId = lockRequestId;
    },
    async expire({ id }: Coupon) {
      await admin.rows("select admin.extend_coupon($1, $2, '2021-01-01', 'to arrange a test')", [tenant, id]);
    },
    async endLock({ redemption }: Coupon) {
      await owner.rows(
        `update core.redemption set lock_expires_at = clock_timestamp()
         where redemption_id = rules.parse_id('red', $1)`,
        [redemption],
      );
    },
  };
}

/** terms: of a template that differs from the usual one. stop: what the maker does with the batch in the end. */
type Way = { terms?: object; isReleased?: false; path?: Step[]; stop?: "suspendBatch" | "recallBatch" };

function waysTo(steps: ReturnType<typeof createSteps>): Record<State, Way> {
  const { lock, redeem, confirm, cancel, reverse, void: voidIt, lockElsewhere, expire, endLock } = steps;
  const reissued = { after_reversal: "reissued" };
  return {
    "not released": { isReleased: false },
    "not yet valid": { terms: { valid_from: "2098-01-01T00:00:00Z" } },
    ISSUED: {},
    "ISSUED, its lock cancelled": { path: [lock, cancel] },
    "ISSUED, its lock lapsed": { path: [lock, endLock] },
    "LOCKED by this lock": { path: [lock] },
    "LOCKED by another": { path: [lockElsewhere] },
    "LOCKED by this lock, past valid_to": { path: [lock, expire] },
    REDEEMED: { path: [lock, confirm] },
    "REDEEMED, reissuable": { terms: reissued, path: [redeem] },
    "REDEEMED, reissuable, past valid_to": { terms: reissued, path: [lock, expire, confirm] },
    "REVERSED, consumed": { path: [redeem, reverse] },
    "REVERSED, reissued": { terms: reissued, path: [lock, confirm, reverse] },
    EXPIRED: { path: [expire] },
    "EXPIRED, its lock cancelled": { path: [lock, expire, cancel] },
    "EXPIRED, its lock lapsed": { path: [lock, expire, endLock] },
    VOIDED: { path: [voidIt] },
    "ISSUED, suspended": { stop: "suspendBatch" },
    "LOCKED by this lock, suspended": { path: [lock], stop: "suspendBatch" },
    "REDEEMED, suspended": { path: [redeem], stop: "suspendBatch" },
    "LOCKED by this lock, recalled": { path: [lock], stop: "recallBatch" },
    "LOCKED by this lock, recalled, past valid_to": { path: [lock, expire], stop: "recallBatch" },
    "REDEEMED, reissuable, recalled": { terms: reissued, path: [redeem], stop: "recallBatch" },
  };
}
