// The routes of the HTTP interface: one for each operation.
import type { Route } from "../route.ts";
import { allocateBatch } from "./allocate-batch.ts";
import { cancel } from "./cancel.ts";
import { closeDay } from "./close-day.ts";
import { confirm } from "./confirm.ts";
import { createBatch } from "./create-batch.ts";
import { exportCodes } from "./export-codes.ts";
import { getBatch } from "./get-batch.ts";
import { getReconciliation } from "./get-reconciliation.ts";
import { getRedemption } from "./get-redemption.ts";
import { getRequest } from "./get-request.ts";
import { getWebhook } from "./get-webhook.ts";
import { listBatches } from "./list-batches.ts";
import { listReconciliations } from "./list-reconciliations.ts";
import { listRedemptions } from "./list-redemptions.ts";
import { lock } from "./lock.ts";
import { openPortal } from "./open-portal.ts";
import { pullEvents } from "./pull-events.ts";
import { query } from "./query.ts";
import { recallBatch } from "./recall-batch.ts";
import { redeem } from "./redeem.ts";
import { replayEvents } from "./replay-events.ts";
import { resumeBatch } from "./resume-batch.ts";
import { reverse } from "./reverse.ts";
import { suspendBatch } from "./suspend-batch.ts";
import { testWebhook } from "./test-webhook.ts";
import { voidCoupon } from "./void.ts";

export const routes: readonly Route[] = [
  lock,
  redeem,
  confirm,
  cancel,
  reverse,
  voidCoupon,
  query,
  createBatch,
  getRedemption,
  listRedemptions,
  getBatch,
  listBatches,
  allocateBatch,
  suspendBatch,
  resumeBatch,
  recallBatch,
  exportCodes,
  getRequest,
  pullEvents,
  listReconciliations,
  getReconciliation,
  closeDay,
  getWebhook,
  replayEvents,
  testWebhook,
  openPortal,
];
