// Generated from docs/openapi by `npm run openapi`. Do not edit.
export const operations = {
  lock: { method: "POST", path: "/v1/coupons/lock", query: [] },
  redeem: { method: "POST", path: "/v1/coupons/redeem", query: [] },
  confirm: { method: "POST", path: "/v1/coupons/confirm", query: [] },
  cancel: { method: "POST", path: "/v1/coupons/cancel", query: [] },
  reverse: { method: "POST", path: "/v1/redemptions/reverse", query: [] },
  void: { method: "POST", path: "/v1/coupons/void", query: [] },
  query: { method: "POST", path: "/v1/coupons/query", query: [] },
  createBatch: { method: "POST", path: "/v1/batches", query: [] },
  getBatch: { method: "GET", path: "/v1/batches/{batch}", query: [] },
  allocateBatch: { method: "POST", path: "/v1/batches/allocate", query: [] },
  getRequest: { method: "GET", path: "/v1/requests/{request_id}", query: [] },
  pullEvents: { method: "GET", path: "/v1/events", query: ["cursor", "limit"] },
  listReconciliations: { method: "GET", path: "/v1/reconciliations", query: ["cursor", "limit"] },
  getReconciliation: { method: "GET", path: "/v1/reconciliations/{date}/{kind}", query: ["distributor"] },
} as const;
