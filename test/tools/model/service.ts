// The service that the model is compared with: minted coupons for any number of lives at once, calls, patches by a DBA,
// and a worker that expires and recalls coupons.
import { sqlState } from "../../../src/database/connect.ts";
import type { Variant } from "../../../src/gate/gate.ts";
import { analyzeGrownTables } from "../../support/sequence-events.ts";
import { moveToNoon } from "../../support/business-days.ts";
import { sendPatiently, type Client } from "../../support/client.ts";
import { pathOf } from "../../support/path-of.ts";
import { scenario, type Scenario, type Teardown } from "../../support/scenario.ts";
import type { Coupon, Minted, Patch } from "./coupon.ts";
import type { Answer, Call } from "./judge.ts";
import { distributor, documentOf, kindOf, setups, tenant, validFrom, validTo } from "./setup.ts";
import type { End, KindName, Setup } from "./setup.ts";

export type Service = Awaited<ReturnType<typeof openService>>;

export async function openService(t: Teardown, variant: Variant, batchSize: number) {
  const setup = setups[variant];
  const running = await scenario(t, { file: documentOf(setup) });
  // No business day ends during the lives.
  await moveToNoon(running, distributor);
  const { owner, worker, steps } = running;
  let turn: Promise<unknown> = Promise.resolve();
  const clients = new Map(setup.callers.map(({ accessKey }) => [accessKey, running.as(accessKey)]));
  return {
    setup,
    owner,
    take: createStock(running, setup, batchSize),
    send: (call: Call) => send(clients.get(call.by.accessKey)!, call),
    /** Returns the SQLSTATE of a refusal, or null. */
    patch: (patch: Patch, { id }: Coupon, to: End): Promise<string | null> =>
      patchCoupon(running, patch, id, validTo[to]).then(
        () => null,
        (error: unknown) => {
          const state = sqlState(error);
          if (state === null) throw error;
          return state;
        },
      ),
    // One after the other: an expirer skips the rows that another one holds.
    work: () =>
      (turn = turn
        .then(steps.expire)
        .then(steps.recall)
        .then(() => analyzeGrownTables(worker))),
    /** Gives every event its position and closes the business day, so that the invariants see feeds and a statement. */
    async close() {
      await analyzeGrownTables(owner);
      await steps.sequence();
      await moveToNoon(running, distributor, 1);
      await steps.close();
      const ready = await owner.rows("select from report.statement where ready_at is not null");
      if (ready.length === 0) throw new Error(`the day did not close: ${JSON.stringify(steps.log)}`);
    },
  };
}

// Coupons of each template, minted one batch at a time.
function createStock(running: Scenario, { callers }: Setup, batchSize: number) {
  const stock = new Map<KindName, Minted[]>();
  const by = running.as(callers.find(({ mayRelease }) => mayRelease)!.accessKey);
  let minting: Promise<unknown> = Promise.resolve();

  async function mint(kind: KindName): Promise<void> {
    if ((stock.get(kind) ?? []).length > 0) return;
    const isReleased = kindOf(kind).isUnreleased !== true;
    const size = kindOf(kind).isAlone === true ? 1 : batchSize;
    const { id: batch, coupons } = await running.makeBatch(by, `tpl_${kind}`, size, { isReleased });
    stock.set(
      kind,
      coupons.map(({ code, id }) => ({ code, id, batch })),
    );
  }

  return async function take(kind: KindName): Promise<Minted> {
    minting = minting.then(() => mint(kind));
    await minting;
    return stock.get(kind)!.pop() ?? take(kind);
  };
}

async function send(client: Client, { operation, requestId, key, values }: Call): Promise<Answer> {
  const body = { request_id: requestId, ...values };
  const options = key === null ? {} : { idempotencyKey: key };
  const { status, text, json, headers } = await sendPatiently(() => client.post(pathOf(operation), body, options));
  return { status, text, json, isReplay: headers["idempotent-replayed"] === "true" };
}

// Time passes by moving the end of a lock or of a validity.
function patchCoupon({ owner, admin }: Scenario, patch: Patch, coupon: string, end: string): Promise<unknown> {
  switch (patch) {
    case "lapse":
      return owner.rows(
        `update core.redemption r set lock_expires_at = clock_timestamp()
         where r.coupon_id = rules.parse_id('cpn', $1) and r.status = 'LOCKED'
           and r.lock_expires_at > clock_timestamp()`,
        [coupon],
      );
    case "begin":
      return owner.rows("update core.coupon c set valid_from = $2 where c.coupon_id = rules.parse_id('cpn', $1)", [
        coupon,
        validFrom.usual,
      ]);
    case "extend":
      return admin.rows("select admin.extend_coupon($1, $2, $3, 'model')", [tenant, coupon, end]);
    case "release":
      return admin.rows("select admin.release_lock($1, $2, 'model')", [tenant, coupon]);
  }
}
