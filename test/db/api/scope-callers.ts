// The callers of scope.test.ts and the operations that they send, with the IDs that each operation takes.
import { routes } from "../../../src/http/routes/table.ts";
import type { Client, Reply } from "../../support/client.ts";
import { tenants, credential, template } from "../../support/tenants.ts";

const [tenantA, strangerA, tenantB] = structuredClone(tenants) as [any, any, any];
tenantB.merchants[0].stores = [
  { external_id: "S1", terminals: ["T1"] },
  { external_id: "S2", terminals: ["T2"] },
];
tenantB.merchants[1].stores = [{ external_id: "S3", terminals: ["T3"] }];
tenantB.templates.push(
  template("tpl_other", "pty_other"),
  template("tpl_scoped", "pty_maker", { merchants: ["mch_b2"] }),
);
tenantA.parties.push({ id: "pty_ashop", name: "a shop", time_zone: "UTC" });
tenantA.merchants.push({ id: "mch_ashop", name: "a shop", party: "pty_ashop" });
tenantA.templates.push(template("tpl_ashop", "pty_ashop"));
// A second tenant of Variant B. Some of its IDs equal IDs of ten_b.
const strangerB = {
  id: "ten_b2",
  name: "B, a stranger",
  variant: "B",
  parties: [
    { id: "pty_maker", name: "m" },
    { id: "pty_far", name: "f" },
  ],
  merchants: [
    { id: "mch_b", name: "b", party: "pty_maker" },
    { id: "mch_far", name: "f", party: "pty_far", stores: [{ external_id: "S4", terminals: ["T4"] }] },
  ],
  templates: [template("tpl_b", "pty_maker"), template("tpl_far", "pty_maker")],
  credentials: [credential("ak_far", "pty_maker")],
};

/** Two tenants of each variant, with parties, merchants, templates and stores that belong to different callers. */
export const scopeTenants = [tenantA, strangerA, tenantB, strangerB];

export type Ids = Record<string, string>;
export type Operation = {
  fields: string[];
  fieldsInB?: string[];
  send: (by: Client, ids: Ids, id: string) => Promise<Reply>;
};
const pos =
  (path: string): Operation["send"] =>
  (by, { merchant, coupon, store, terminal }, request_id) =>
    by.post(path, { request_id, merchant, coupon, store, terminal });

// The fields with IDs are listed in the order in which the service checks them.
export const operations: Record<string, Operation> = {
  lock: { fields: ["merchant", "coupon"], fieldsInB: ["store", "terminal"], send: pos("/v1/coupons/lock") },
  redeem: { fields: ["merchant", "coupon"], fieldsInB: ["store", "terminal"], send: pos("/v1/coupons/redeem") },
  confirm: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon, lock_request_id }, request_id) =>
      by.post("/v1/coupons/confirm", { request_id, merchant, coupon, lock_request_id }),
  },
  cancel: {
    fields: ["coupon"],
    send: (by, { coupon, lock_request_id }, request_id) =>
      by.post("/v1/coupons/cancel", { request_id, coupon, lock_request_id }),
  },
  void: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon }, request_id) => by.post("/v1/coupons/void", { request_id, merchant, coupon }),
  },
  query: {
    fields: ["merchant", "coupon"],
    send: (by, { merchant, coupon }, request_id) => by.post("/v1/coupons/query", { request_id, merchant, coupon }),
  },
  reverse: {
    fields: ["redemption"],
    send: (by, { redemption }, request_id) => by.post("/v1/redemptions/reverse", { request_id, redemption }),
  },
  create_batch: {
    fields: ["template", "distributor"],
    send: (by, { template, distributor }, request_id) =>
      by.post("/v1/batches", { request_id, template, distributor, total_count: 1 }),
  },
  get_batch: { fields: ["batch"], send: (by, { batch }) => by.get(`/v1/batches/${batch}`) },
  allocate_batch: {
    fields: ["batch"],
    send: (by, { batch }, request_id) => by.post("/v1/batches/allocate", { request_id, batch }),
  },
  get_request: {
    fields: ["request"],
    send: (by, { request }) => by.get(`/v1/requests/${encodeURIComponent(request!)}`),
  },
};
export const reads = routes.filter(({ isWrite }) => !isWrite).map(({ operation }) => operation);
// The maker sends these; the merchant's party and its delegates send all others.
export const sentByMaker = ["create_batch", "get_batch", "allocate_batch"];
