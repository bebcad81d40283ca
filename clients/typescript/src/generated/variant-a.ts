// Generated from docs/openapi by `npm run openapi`. Do not edit.

export interface CouponOfVariantA {
  coupon_id: string;
  status: "ISSUED" | "LOCKED" | "REDEEMED" | "EXPIRED" | "VOIDED";
  template_id: string;
  batch_id: string;
  /** UTC, with milliseconds. */
  created_at: string;
  /** UTC, with milliseconds. */
  valid_from: string;
  /** UTC, with milliseconds. */
  valid_to: string;
  /** The live redemption; if there is none, the last reversed one. Present only if you may act for its merchant. */
  redemption?: {
    redemption: string;
    merchant_id: string;
    status: "LOCKED" | "REDEEMED" | "REVERSED";
    /** UTC, with milliseconds. */
    started_at: string;
    /** In the tenant's amount unit. */
    discount_amount: number;
    currency: string;
  };
}
/**
 * What a lock would answer now. Only if the query has `order_amount` or items.
 *
 */
export interface Quote {
  redeemable: boolean;
  /** Null: not redeemable. */
  discount_amount: number | null;
  currency: string;
  /** Why a lock would be refused; null: it would succeed. */
  code: string | null;
  message: string | null;
}
export interface Batch {
  external_id: string;
  status: "PENDING" | "COMPLETED" | "ALLOCATED";
  total_count: number;
  minted_count: number;
  maker_party_id: string;
  distributor_party_id: string;
  template_id: string;
  /** UTC, with milliseconds. */
  created_at: string;
  /** Null: not suspended. */
  suspended_at: string | null;
  /** Only of a recalled batch. */
  recall?: {
    /** UTC, with milliseconds. */
    requested_at: string;
    voided_count: number;
    /** Null: still running. */
    finished_at: string | null;
  };
}
export interface Redemption {
  redemption: string;
  status: "LOCKED" | "REDEEMED" | "REVERSED" | "CANCELLED" | "LAPSED";
  coupon_id: string;
  batch_id: string;
  template_id: string;
  merchant_id: string;
  store: string | null;
  terminal: string | null;
  order_id: string | null;
  order_amount: number | null;
  /** In the tenant's amount unit. */
  discount_amount: number;
  currency: string;
  /** The request_id of the lock or redeem. */
  lock_request_id: string;
  /** UTC, with milliseconds. */
  started_at: string;
  /** Null: redeemed without a lock. */
  lock_expires_at: string | null;
  redeemed_at: string | null;
  reversed_at: string | null;
  reversal: string | null;
  /** The reason of the reversal. */
  reason: string | null;
}
export interface RedemptionOfList {
  redemption: string;
  status: "LOCKED" | "REDEEMED" | "REVERSED" | "CANCELLED" | "LAPSED";
  coupon_id: string;
  batch_id: string;
  template_id: string;
  merchant_id: string;
  store: string | null;
  terminal: string | null;
  order_id: string | null;
  order_amount: number | null;
  /** In the tenant's amount unit. */
  discount_amount: number;
  currency: string;
  /** The request_id of the lock or redeem. */
  lock_request_id: string;
  /** UTC, with milliseconds. */
  started_at: string;
  /** Null: redeemed without a lock. */
  lock_expires_at: string | null;
  redeemed_at: string | null;
  reversed_at: string | null;
  reversal: string | null;
  /** The reason of the reversal. */
  reason: string | null;
  /** What happened; absent in a list by order_id. The other fields show the redemption as it is now. */
  change?: "REDEMPTION" | "REVERSAL";
  /** When it was recorded, which decides its business day. */
  changed_at?: string;
}
/**
 * Present only if the webhook or the pull asks for it with expand. What does not apply is null.
 *
 */
export interface EventData {
  batch_id: string;
  template_id: string;
  merchant_id: string | null;
  store: string | null;
  terminal: string | null;
  order_id: string | null;
  order_amount: number | null;
  /** For a reversal, the discount of its redemption. Never negative. */
  discount_amount: number | null;
  currency: string | null;
  reversal_id: string | null;
}
export interface CouponRedeemed {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.redeemed";
  coupon_id: string;
  redemption_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponReversed {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.reversed";
  coupon_id: string;
  redemption_id: string;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponExpired {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.expired";
  coupon_id: string;
  redemption_id: null;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface CouponVoided {
  /** The same in the feed and in every attempt of a webhook. */
  event_id: string;
  event_type: "coupon.voided";
  coupon_id: string;
  redemption_id: null;
  /** UTC, with milliseconds. */
  occurred_at: string;
  /** UTC, with milliseconds. */
  recorded_at: string;
  data?: EventData;
}
export interface Reconciliation {
  business_date: string;
  distributor_party_id: string;
  /** UTC, with milliseconds. */
  closed_at: string;
  files: {
    kind: "detail" | "summary";
    /** The path of the download. */
    href: string;
    rows: number;
    bytes: number;
    sha256: string;
  }[];
}
export interface WebhookAttempt {
  event_id: string;
  event_type:
    | "coupon.redeemed"
    | "coupon.reversed"
    | "coupon.voided"
    | "coupon.expired"
    | "batch.generated"
    | "allocation.completed"
    | "reconciliation.ready";
  /** UTC, with milliseconds. */
  attempted_at: string;
  /** Your answer; null: there was none. */
  http_status: number | null;
  /** Why the attempt failed: its kind, for people to read; null: it did not fail. */
  reason: string | null;
  /** When the event is sent again; null: not after this attempt. */
  next_attempt_at: string | null;
}
export interface Operations {
  /** Reserves a coupon for an order and returns the discount. */
  lock: {
    input: LockInput;
    answer: LockAnswer;
  };
  /** Locks and confirms in one step. */
  redeem: {
    input: RedeemInput;
    answer: RedeemAnswer;
  };
  /** Completes the redemption of a lock. */
  confirm: {
    input: ConfirmInput;
    answer: ConfirmAnswer;
  };
  /** Gives up a lock, so that the coupon can be used again. */
  cancel: {
    input: CancelInput;
    answer: CancelAnswer;
  };
  /** Reverses a completed redemption in full. */
  reverse: {
    input: ReverseInput;
    answer: ReverseAnswer;
  };
  /** Makes an unused coupon invalid for good. */
  void: {
    input: VoidInput;
    answer: VoidAnswer;
  };
  /** Shows a coupon, and what a lock would answer for an order. Changes nothing. */
  query: {
    input: QueryInput;
    answer: QueryAnswer;
  };
  /** Orders coupons of a template. The service mints them in the background. */
  createBatch: {
    input: CreateBatchInput;
    answer: CreateBatchAnswer;
  };
  /** Shows a redemption. */
  getRedemption: {
    input: GetRedemptionInput;
    answer: GetRedemptionAnswer;
  };
  /** Lists the redemptions of an order, or all redemptions and reversals of a merchant, oldest first. */
  listRedemptions: {
    input: ListRedemptionsInput;
    answer: ListRedemptionsAnswer;
  };
  /** Shows a batch. */
  getBatch: {
    input: GetBatchInput;
    answer: GetBatchAnswer;
  };
  /** Lists batches, newest first. */
  listBatches: {
    input: ListBatchesInput;
    answer: ListBatchesAnswer;
  };
  /** Releases a whole finished batch to its distributor. */
  allocateBatch: {
    input: AllocateBatchInput;
    answer: AllocateBatchAnswer;
  };
  /** Stops a batch: its coupons can be neither locked nor redeemed until it is resumed. */
  suspendBatch: {
    input: SuspendBatchInput;
    answer: SuspendBatchAnswer;
  };
  /** Ends the suspension of a batch. */
  resumeBatch: {
    input: ResumeBatchInput;
    answer: ResumeBatchAnswer;
  };
  /** Suspends a batch for good and voids its unused coupons in the background. */
  recallBatch: {
    input: RecallBatchInput;
    answer: RecallBatchAnswer;
  };
  /** Shows the recorded outcome of a write, for a caller that lost its answer. */
  getRequest: {
    input: GetRequestInput;
    answer: GetRequestAnswer;
  };
  /** Returns a page of coupon events, oldest first. */
  pullEvents: {
    input: PullEventsInput;
    answer: PullEventsAnswer;
  };
  /** Lists the closed business days, oldest first. */
  listReconciliations: {
    input: ListReconciliationsInput;
    answer: ListReconciliationsAnswer;
  };
  /** Sandbox: closes the open business day of a distributor now. */
  closeDay: {
    input: CloseDayInput;
    answer: CloseDayAnswer;
  };
  /** Shows the state of deliveries to your webhook. */
  getWebhook: {
    input: GetWebhookInput;
    answer: GetWebhookAnswer;
  };
  /** Sends events to your webhook again, with the same webhook-id. */
  replayEvents: {
    input: ReplayEventsInput;
    answer: ReplayEventsAnswer;
  };
  /** Sends a test event to your webhook, which is in no feed, ledger or statement. */
  testWebhook: {
    input: TestWebhookInput;
    answer: TestWebhookAnswer;
  };
  /** Makes a link to your pages: batches, redemptions, events, statements and webhooks. */
  openPortal: {
    input: OpenPortalInput;
    answer: OpenPortalAnswer;
  };
}
export interface LockInput {
  request_id: string;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
  merchant: string;
  /** The total of the order. Required if the discount is a percentage or has a minimum. */
  order_amount?: number | null;
  /** Without it: the currency of the template. */
  currency?: string | null;
  /** Your number for the order. */
  order_id?: string | null;
  store?: string | null;
  terminal?: string | null;
  /** Further fields beside items have no effect, but a repeat must have the same ones. */
  redemption_context?: {
    items?:
      | {
          sku?: string | null;
          quantity?: number | null;
          /** The total of the line; negative for a returned one. */
          amount?: number | null;
        }[]
      | null;
    [k: string]: unknown;
  } | null;
}
export interface LockAnswer {
  ok: true;
  redemption: string;
  coupon_id: string;
  /** In the tenant's amount unit. */
  discount_amount: number;
  currency: string;
  /** UTC, with milliseconds. */
  lock_expires_at: string;
}
export interface RedeemInput {
  request_id: string;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
  merchant: string;
  /** The total of the order. Required if the discount is a percentage or has a minimum. */
  order_amount?: number | null;
  /** Without it: the currency of the template. */
  currency?: string | null;
  /** Your number for the order. */
  order_id?: string | null;
  store?: string | null;
  terminal?: string | null;
  /** Further fields beside items have no effect, but a repeat must have the same ones. */
  redemption_context?: {
    items?:
      | {
          sku?: string | null;
          quantity?: number | null;
          /** The total of the line; negative for a returned one. */
          amount?: number | null;
        }[]
      | null;
    [k: string]: unknown;
  } | null;
}
export interface RedeemAnswer {
  ok: true;
  redemption: string;
  coupon_id: string;
  /** In the tenant's amount unit. */
  discount_amount: number;
  currency: string;
}
export interface ConfirmInput {
  request_id: string;
  lock_request_id: string;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
  merchant: string;
}
export interface ConfirmAnswer {
  ok: true;
  redemption: string;
  status: "REDEEMED";
}
export interface CancelInput {
  request_id: string;
  lock_request_id: string;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
}
export interface CancelAnswer {
  ok: true;
  redemption: string;
  status: "CANCELLED";
}
export interface ReverseInput {
  request_id: string;
  redemption: string;
  reason?: string | null;
}
export interface ReverseAnswer {
  ok: true;
  redemption: string;
  reversal: string;
  status: "REVERSED";
}
export interface VoidInput {
  request_id: string;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
  merchant: string;
  reason?: string | null;
}
export interface VoidAnswer {
  ok: true;
  coupon_id: string;
  status: "VOIDED";
}
export interface QueryInput {
  request_id?: string | null;
  /** The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters are dropped; full-width letters are read as plain ones, O as 0, I and L as 1. */
  coupon: string;
  merchant: string;
  /** The total of the order. Required if the discount is a percentage or has a minimum. */
  order_amount?: number | null;
  /** Without it: the currency of the template. */
  currency?: string | null;
  store?: string | null;
  terminal?: string | null;
  /** Further fields beside items have no effect, but a repeat must have the same ones. */
  redemption_context?: {
    items?:
      | {
          sku?: string | null;
          quantity?: number | null;
          /** The total of the line; negative for a returned one. */
          amount?: number | null;
        }[]
      | null;
    [k: string]: unknown;
  } | null;
}
export interface QueryAnswer {
  ok: true;
  coupon: CouponOfVariantA;
  quote?: Quote;
}
export interface CreateBatchInput {
  request_id: string;
  template: string;
  total_count: number;
  /** A party. Without it: the distributor of the template, else the maker. */
  distributor?: string | null;
}
export interface CreateBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface GetRedemptionInput {
  redemption: string;
}
export interface GetRedemptionAnswer {
  ok: true;
  redemption: Redemption;
}
export interface ListRedemptionsInput {
  merchant: string;
  /** The redemptions of this order: the newest 100. */
  order_id?: string | null;
  /** Changes that were recorded from this moment. */
  from?: string;
  /** Changes that were recorded before this moment. */
  to?: string;
  /** The next_cursor of the page before. Without it: the oldest change. */
  cursor?: string;
  /** The most entries of a page; by default 100. */
  limit?: number;
}
export interface ListRedemptionsAnswer {
  ok: true;
  redemptions: RedemptionOfList[];
  /** The cursor of the next page; opaque. Null in a list by order_id. */
  next_cursor: string | null;
}
export interface GetBatchInput {
  batch: string;
}
export interface GetBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface ListBatchesInput {
  status?: "PENDING" | "COMPLETED" | "ALLOCATED";
  /** Only batches of this template. */
  template?: string;
  /** The next_cursor of the page before. Without it: the newest batch. */
  cursor?: string;
  /** The most entries of a page; by default 100. */
  limit?: number;
}
export interface ListBatchesAnswer {
  ok: true;
  batches: Batch[];
  /** The cursor of the next page; opaque. Null: there is none. */
  next_cursor: string | null;
}
export interface AllocateBatchInput {
  request_id: string;
  batch: string;
}
export interface AllocateBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface SuspendBatchInput {
  request_id: string;
  batch: string;
  reason?: string | null;
}
export interface SuspendBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface ResumeBatchInput {
  request_id: string;
  batch: string;
  reason?: string | null;
}
export interface ResumeBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface RecallBatchInput {
  request_id: string;
  batch: string;
  reason?: string | null;
}
export interface RecallBatchAnswer {
  ok: true;
  batch: Batch;
}
export interface GetRequestInput {
  request_id: string;
}
export interface GetRequestAnswer {
  ok: true;
  request: {
    request_id: string;
    operation: string;
    http_status: 200 | 404 | 409 | 422;
    /** The recorded answer: the body of a 200 of that operation, or an error. */
    response: {
      [k: string]: unknown;
    };
    /** UTC, with milliseconds. */
    recorded_at: string;
  };
}
export interface PullEventsInput {
  /** The next_cursor of the page before. Without it: the oldest event. */
  cursor?: string;
  /** The most entries of a page; by default 100. */
  limit?: number;
  /** Whether the events have data; by default false. */
  expand?: boolean;
}
export interface PullEventsAnswer {
  events: (CouponRedeemed | CouponReversed | CouponExpired | CouponVoided)[];
  /** The cursor of the next page; opaque. */
  next_cursor: string;
}
export interface ListReconciliationsInput {
  /** The next_cursor of the page before. */
  cursor?: string;
  /** The most entries of a page; by default 100. */
  limit?: number;
}
export interface ListReconciliationsAnswer {
  reconciliations: Reconciliation[];
  /** The cursor of the next page. */
  next_cursor: string;
}
export interface CloseDayInput {
  request_id: string;
  /** A party. Variant A needs it if the tenant has several distributors. */
  distributor?: string | null;
}
export interface CloseDayAnswer {
  ok: true;
  distributor_party_id: string;
  /** The day that is closed. */
  business_date: string;
  /** The day that is open now. */
  next_business_date: string;
}
export interface GetWebhookInput {
  /** Whose webhook. Needed if the tenant has several. */
  party?: string;
}
export interface GetWebhookAnswer {
  ok: true;
  webhook: {
    party_id: string;
    url: string;
    status: "healthy" | "failing" | "paused" | "disabled";
    /** Events that you have not taken yet. Counts to 10,000. */
    waiting: number;
    /** Events that were given up until they are replayed. Counts to 10,000. */
    parked: number;
    /**
     * The last ones, newest first.
     *
     */
    attempts: WebhookAttempt[];
  };
}
export interface ReplayEventsInput {
  request_id: string;
  /** One event. */
  event_id?: string | null;
  /** Events that were recorded from this moment. */
  from?: string | null;
  /** Events that were recorded before this moment, which is later than from. */
  to?: string | null;
  /** Whose webhook. Needed if the tenant has several. */
  party?: string | null;
}
export interface ReplayEventsAnswer {
  ok: true;
  /** How many events are sent again. */
  replayed: number;
}
export interface TestWebhookInput {
  request_id: string;
  event_type:
    | "coupon.redeemed"
    | "coupon.reversed"
    | "coupon.voided"
    | "coupon.expired"
    | "batch.generated"
    | "allocation.completed"
    | "reconciliation.ready";
  /** Whose webhook. Needed if the tenant has several. */
  party?: string | null;
}
export interface TestWebhookAnswer {
  ok: true;
  event_id: string;
  event_type:
    | "coupon.redeemed"
    | "coupon.reversed"
    | "coupon.voided"
    | "coupon.expired"
    | "batch.generated"
    | "allocation.completed"
    | "reconciliation.ready";
}
export interface OpenPortalInput {
  request_id: string;
}
export interface OpenPortalAnswer {
  ok: true;
  portal_link: string;
  /** Signs in once. Whoever has it sees what you may see: pass it on as you would a password. */
  url: string;
  /** UTC, with milliseconds. */
  expires_at: string;
}
export interface Downloads {
  /** Downloads the codes of a batch as CSV, encrypted to your public key. */
  exportCodes: {
    input: ExportCodesInput;
  };
  /** Downloads a file of a daily statement as CSV. */
  getReconciliation: {
    input: GetReconciliationInput;
  };
}
export interface ExportCodesInput {
  batch: string;
  /** The party whose public key encrypts. Needed if both the maker and the distributor have one. */
  party?: string;
}
export interface GetReconciliationInput {
  date: string;
  kind: "detail" | "summary";
  /** A party. Variant A needs it if the tenant has several distributors. */
  distributor?: string;
}
