// The service as its documents describe it, small enough to read at once: what each caller may do with a few coupons,
// in memory. The model predicts the answer to each call. IDs and the first answer to a request come from the service.
import { canonical, invalid, refuse, type Call, type Expected, type Operation } from "./call.ts";
import type { Coupon } from "./coupon.ts";
import type { Setup } from "./kinds.ts";
import { judgeGrant } from "./judge-grant.ts";
import { judgeCancel, judgeConfirm, judgeReverse } from "./judge-redemption.ts";
import type { Judge, Model } from "./knowledge.ts";
import { judgeBatch, judgeGetRequest, judgeQuery, judgeVoid } from "./judge-others.ts";

const reads = ["query", "get_batch", "get_request"];
const judges: Record<Operation, Judge> = {
  lock: judgeGrant,
  redeem: judgeGrant,
  confirm: judgeConfirm,
  cancel: judgeCancel,
  reverse: judgeReverse,
  void: judgeVoid,
  query: judgeQuery,
  allocate_batch: judgeBatch,
  get_batch: judgeBatch,
  get_request: judgeGetRequest,
};

export function createModel(setup: Setup, coupons: Coupon[], mistyped: string): Model {
  return { setup, coupons, records: [], mistyped };
}

export function judge(model: Model, call: Call): Expected {
  const isRead = reads.includes(call.operation);
  const early = checkShape(model, call) ?? (isRead ? null : findReplay(model, call));
  if (early !== null) return early;
  const expected = judges[call.operation](model, call);
  if (isRead || expected.status === 400) return expected;
  return {
    ...expected,
    learn(reply) {
      model.records.push({ call, status: reply.status, text: reply.text });
      expected.learn?.(reply);
    },
  };
}

// Errors that precede every lookup, and are not recorded.
function checkShape({ setup, mistyped }: Model, { operation, values }: Call): Expected | null {
  if (setup.variant === "B" && "redemption_context" in values) return invalid("redemption_context");
  if (setup.variant === "B" && "terminal" in values && !("store" in values)) return invalid("terminal");
  return "coupon" in values && values["coupon"] === mistyped && operation !== "reverse"
    ? refuse(422, "COUPON_CODE_INVALID")
    : null;
}

function findReplay({ records }: Model, call: Call): Expected | null {
  const own = records.filter((record) => record.call.by.scope === call.by.scope);
  const used = [
    own.find((record) => record.call.requestId === call.requestId),
    own.find((record) => call.key !== null && record.call.key === call.key),
  ].filter((one) => one !== undefined);
  if (used.length === 0) return null;
  const isEqual = used.every(
    (record) => record.call.operation === call.operation && canonical(record.call.values) === canonical(call.values),
  );
  if (!isEqual) return refuse(422, "IDEMPOTENCY_KEY_REUSED");
  const { status, text } = used[0]!;
  const isKnown = own.some((record) => record.call.requestId === call.requestId);
  const learn = () => void records.push({ call: { ...call, key: null }, status, text });
  return { status, replayOf: text, ...(!isKnown && { learn }) };
}
