// The service that the model is compared with: minted coupons for any number of runs at once, calls over HTTP or
// through the gate, patches by a DBA, and a worker that expires coupons.
import { randomBytes } from "node:crypto";
import { connect, sqlState } from "../../src/database/connect.ts";
import { batchKey, makeCode } from "../../src/crypto/coupon-code.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import type { Database } from "../../src/database/types.ts";
import { analyzeGrownTables } from "../support/analyze-grown-tables.ts";
import { noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { startService, type Running, type Teardown } from "../support/service.ts";
import type { BadCodes } from "./choices.ts";
import type { Coupon, Minted, Patch } from "./coupon.ts";
import { setups, document, kindNames, kindOf, validFrom, validTo, type Setup, type KindName } from "./kinds.ts";
import { createSender, type Send } from "./send.ts";

export type Environment = {
  setup: Setup;
  service: Running;
  badCodes: BadCodes;
  take(kind: KindName): Promise<Minted>;
  send: Send;
  // Returns the SQLSTATE of a refusal, or null.
  patch(patch: Patch, coupon: Coupon, to?: keyof typeof validTo): Promise<string | null>;
  work(): Promise<void>;
};

export async function openEnvironment(t: Teardown, variant: "A" | "B", batchSize: number): Promise<Environment> {
  const setup = setups[variant];
  // No limit, because strangers ask for other tenants' coupons here all the time.
  const service = await startService(t, document(setup), {}, { unknownCodesPerMinute: null });
  // No business day ends during the runs.
  await setZone(service, setup.distributor, zoneOf(noonOffset()));
  const open = (role: string) => connect(service.address, { name: "coupon model", role, max: 4 });
  const [owner, admin, worker] = [open("coupon_owner"), open("coupon_admin"), open("coupon_worker")];
  t.teardown(() => Promise.all([owner.end(), admin.end(), worker.end()]));
  const stock = createStock(service, setup, batchSize);
  return {
    setup,
    service,
    badCodes: makeBadCodes(service),
    take: stock.take,
    send: await createSender(t, service, setup),
    async patch(patch, { id }, to = "usual") {
      try {
        await patchCoupon({ owner, admin }, patch, setup.tenant, id, validTo[to]);
        return null;
      } catch (error) {
        const state = sqlState(error);
        if (state === null) throw error;
        return state;
      }
    },
    work: createWork(worker),
  };
}

function makeBadCodes({ keys }: Running): BadCodes {
  const unknown = makeCode(keys, keys.current, batchKey(keys, keys.current, randomBytes(32)), 1);
  // The last character is part of the tag.
  const mistyped = unknown.slice(0, -1) + (unknown.endsWith("7") ? "8" : "7");
  return { unknown, mistyped };
}

// One worker for all runs. A run that asks while the worker is busy waits for its next turn.
function createWork(worker: Database): () => Promise<void> {
  const expire = createExpirer({ database: worker, stopping: new AbortController().signal });
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  return () => {
    next ??= current.then(async () => {
      next = null;
      current = expire().then(() => analyzeGrownTables(worker));
      await current;
    });
    return next;
  };
}

// Time passes by moving the end of a lock or of a validity.
async function patchCoupon(
  { owner, admin }: { owner: Database; admin: Database },
  patch: Patch,
  tenant: string,
  coupon: string,
  end: string,
): Promise<void> {
  switch (patch) {
    case "lapse":
      await owner.rows(
        `update core.redemption r set lock_expires_at = clock_timestamp()
         where r.coupon_id = rules.parse_id('cpn', $1) and r.status = 'LOCKED'
           and r.lock_expires_at > clock_timestamp()`,
        [coupon],
      );
      return;
    case "begin":
      await owner.rows("update core.coupon c set valid_from = $2 where c.coupon_id = rules.parse_id('cpn', $1)", [
        coupon,
        validFrom.usual,
      ]);
      return;
    case "extend":
      return void (await admin.rows("select admin.extend_coupon($1, $2, $3, 'model')", [tenant, coupon, end]));
    case "release":
      return void (await admin.rows("select admin.release_lock($1, $2, 'model')", [tenant, coupon]));
    case "withdraw":
      return void (await admin.rows("select admin.void_coupon($1, $2, 'model')", [tenant, coupon]));
  }
}

// Coupons of each template, minted one batch at a time. An unreleased batch has one coupon, because a run releases it.
function createStock(service: Running, setup: Setup, batchSize: number) {
  const stock = new Map<KindName, Minted[]>(kindNames.map((kind) => [kind, []]));
  const by = service.as(setup.makerKey);
  let minting: Promise<void> = Promise.resolve();

  async function mint(kind: KindName): Promise<void> {
    const coupons = stock.get(kind)!;
    if (coupons.length > 0) return;
    const isReleased = kindOf(kind).isUnreleased !== true;
    for (let batches = isReleased ? 1 : 20; batches > 0; batches -= 1) {
      const { id, codes, couponIds } = await service.makeBatch(by, `tpl_${kind}`, isReleased ? batchSize : 1, {
        isReleased,
      });
      coupons.push(...codes.map((code, index) => ({ code, id: couponIds[index]!, batch: id })));
    }
  }

  return {
    async take(kind: KindName): Promise<Minted> {
      let minted = stock.get(kind)!.pop();
      while (minted === undefined) {
        minting = minting.then(() => mint(kind));
        await minting;
        minted = stock.get(kind)!.pop();
      }
      return minted;
    },
  };
}
