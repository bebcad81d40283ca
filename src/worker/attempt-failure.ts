// Why an attempt to send a webhook failed, in two texts. The operator sees what happened, with names and addresses. The
// subscriber, who chooses the URL, sees only its kind, and must not learn what a name means inside our network.
import { messageOf } from "../common/program.ts";

/** A failure that this service finds itself. `reason` is the text for the subscriber, by default the message. */
export class AttemptFailure extends Error {
  readonly reason: string;

  constructor(message: string, reason: string = message) {
    super(message);
    this.reason = reason;
  }
}

const reasons: [code: RegExp, reason: string][] = [
  [/^ECONNREFUSED$/, "the connection was refused"],
  [/^(ECONNRESET|EPIPE)$/, "the connection was closed"],
  [/^ETIMEDOUT$/, "the connection timed out"],
  [/^E(HOST|NET)(UNREACH|DOWN)$/, "the receiver is unreachable"],
  [/^HPE_/, "the answer is not valid HTTP"],
  [/CERT|SIGNATURE/, "the certificate is not valid"],
  [/^(EPROTO|ERR_SSL|ERR_TLS)/, "TLS failed"],
];

/** For the subscriber. */
export function findReason(error: unknown): string {
  if (error instanceof AttemptFailure) return error.reason;
  const { code = "", syscall = "" } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (syscall.startsWith("query"))
    return /^(ENOTFOUND|ENODATA)$/.test(code) ? noAddress : "the name lookup of the receiver failed";
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? "the request failed";
}

export const noAddress = "the name of the receiver has no address";

/** For the operator. The text may quote the receiver's certificate, so only plain characters are kept. */
export function describeFailure(error: unknown): string {
  return messageOf(error)
    .replace(/[^ -~]/g, "?")
    .slice(0, 200);
}
