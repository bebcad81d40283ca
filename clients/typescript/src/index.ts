// Everything that the package offers.
export {
  createClient,
  type Answer,
  type Client,
  type ClientOptions,
  type Input,
  type OperationName,
  type StatementFile,
  type Variant,
} from "./client.ts";
export type { CodesDownload, Download } from "./download.ts";
export {
  CouponError,
  DownloadError,
  isRefused,
  RefusedError,
  UnansweredError,
  WebhookError,
  type ErrorCode,
} from "./errors.ts";
export type { WebhookEvent } from "./generated/errors-and-events.ts";
export type { CallOptions, ReplyInfo } from "./sender.ts";
export { newRequestId } from "./signature.ts";
export { verifyWebhook, type Webhook, type WebhookRequest } from "./webhook.ts";
