// A caller of the service: each operation by its name, with the usual fields filled in, and the plain requests below
// them.
import { postOk, type Client, type Reply } from "./client.ts";
import { newRequestId } from "./request-id.ts";

/** A coupon, with the lock and the redemption that operations on it have made. */
export type Coupon = { code: string; id: string; lockRequestId: string; redemption: string };

/** Fields of a body, added to the usual ones or instead of them. */
type More = Record<string, unknown>;

type Operations<Result> = {
  lock(coupon: Coupon, more?: More): Promise<Result>;
  redeem(coupon: Coupon, more?: More): Promise<Result>;
  confirm(coupon: Coupon, more?: More): Promise<Result>;
  cancel(coupon: Coupon, more?: More): Promise<Result>;
  reverse(coupon: Coupon, more?: More): Promise<Result>;
  void(coupon: Coupon, more?: More): Promise<Result>;
  query(coupon: Coupon, more?: More): Promise<Result>;
  createBatch(template: string, total_count: number, more?: More): Promise<Result>;
  allocateBatch(batch: string, more?: More): Promise<Result>;
  suspendBatch(batch: string, more?: More): Promise<Result>;
  resumeBatch(batch: string, more?: More): Promise<Result>;
  recallBatch(batch: string, more?: More): Promise<Result>;
};

/** `ok`: the body of a success, or an exception. It is patient when the machine is busy. */
export type Caller = Client & Operations<Reply> & { ok: Operations<any> };

/** A coupon that was neither locked nor redeemed names these. */
export const untouched = { lockRequestId: "no-lock", redemption: `red_${"0".repeat(26)}` };

/** `merchant`: where this caller redeems. */
export function createCaller(client: Client, merchant: string): Caller {
  return {
    ...client,
    ...createOperations(client.post, ({ status, json }) => (status === 200 ? json : null), merchant),
    ok: createOperations<any>(
      (path, body) => postOk(client, path, body),
      (json) => json,
      merchant,
    ),
  };
}

function createOperations<Result>(
  send: (path: string, body: More) => Promise<Result>,
  successOf: (result: Result) => any,
  merchant: string,
): Operations<Result> {
  const post = (path: string, body: More) => send(path, { request_id: newRequestId(), ...body });
  const grant =
    (path: string) =>
    async (coupon: Coupon, more: More = {}) => {
      const body = { request_id: newRequestId(), coupon: coupon.code, merchant, ...more };
      const result = await send(path, body);
      const success = successOf(result);
      if (success !== null) Object.assign(coupon, { lockRequestId: body.request_id, redemption: success.redemption });
      return result;
    };
  const byLock = ({ code, lockRequestId }: Coupon) => ({ coupon: code, lock_request_id: lockRequestId });
  return {
    lock: grant("/v1/coupons/lock"),
    redeem: grant("/v1/coupons/redeem"),
    confirm: (coupon, more) => post("/v1/coupons/confirm", { ...byLock(coupon), merchant, ...more }),
    cancel: (coupon, more) => post("/v1/coupons/cancel", { ...byLock(coupon), ...more }),
    reverse: ({ redemption }, more) => post("/v1/redemptions/reverse", { redemption, ...more }),
    void: ({ code }, more) => post("/v1/coupons/void", { coupon: code, merchant, ...more }),
    query: ({ code }, more) => send("/v1/coupons/query", { coupon: code, merchant, ...more }),
    createBatch: (template, total_count, more) => post("/v1/batches", { template, total_count, ...more }),
    allocateBatch: (batch, more) => post("/v1/batches/allocate", { batch, ...more }),
    suspendBatch: (batch, more) => post("/v1/batches/suspend", { batch, ...more }),
    resumeBatch: (batch, more) => post("/v1/batches/resume", { batch, ...more }),
    recallBatch: (batch, more) => post("/v1/batches/recall", { batch, ...more }),
  };
}
