// Performs the operation of a signed request, in this order: limits of the credential, shape, code, database.
import type { IncomingMessage } from "node:http";
import type { Caller } from "./authenticate.ts";
import { codeIssue } from "./code-places.ts";
import type { Logger } from "../common/log.ts";
import { containsCode } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { CodesFile, Gate, Outcome, StatementFile } from "../gate/gate.ts";
import type { Exports } from "./codes-download.ts";
import { openDownload } from "./download.ts";
import { invalid, Problem, type Answer } from "./problem.ts";
import { isUnknownCoupon, type Limiter } from "./rate-limiter.ts";
import { readCall, type Input, type Reading } from "./read-call.ts";
import type { Route } from "./route.ts";

export type OperatorParts = {
  gate: Gate;
  keys: MasterKeys;
  log: Logger;
  limiter: Limiter;
  exports: Exports;
  consoleUrl: string;
};
export type Received = {
  route: Route;
  segments: Record<string, string>;
  query: string;
  body: Buffer;
  input: Input;
  caller: Caller;
  requestId: string;
  /** The deadline of the answer, on the clock of performance.now(). */
  deadline: number;
};

export function createOperator({ gate, keys, log, limiter, exports, consoleUrl }: OperatorParts) {
  // Runs all checks that need no database.
  function readRequest(request: IncomingMessage, received: Received): Reading {
    const { caller, route } = received;
    limiter.admit(caller.credential.accessKey);
    if (containsCode(keys, caller.nonce)) throw invalid([codeIssue("x-svc-nonce")]);
    // Node makes the distinct headers when they are read, and few requests have one of these.
    const hasKey = request.headers["idempotency-key"] !== undefined;
    const idempotencyKeys = hasKey ? request.headersDistinct["idempotency-key"]! : [];
    return readCall(route, caller.credential.variant, { ...received, idempotencyKeys }, keys);
  }

  // A refused request spends its nonce too. If the nonce was already used, NONCE_REUSED replaces the refusal, because
  // it comes first in the order of errors.
  async function refuse({ caller, requestId, deadline }: Received, error: unknown): Promise<Answer> {
    // A spent nonce is stored, and no code may be stored.
    if (!(error instanceof Problem) || containsCode(keys, caller.nonce)) throw error;
    const { accessKey, tenantId, credentialId } = caller.credential;
    const call = { credential_id: credentialId, nonce: caller.nonce, request_id: requestId };
    const nonceRefusal = await gate.spendNonce(tenantId, call, deadline);
    if (nonceRefusal !== null) return toAnswer(nonceRefusal);
    limiter.countCode(accessKey, error);
    throw error;
  }

  async function run(request: IncomingMessage, received: Received): Promise<Answer> {
    const { route, caller, requestId, deadline } = received;
    const isHead = request.method === "HEAD";
    const { accessKey, tenantId, credentialId } = caller.credential;
    let read: Reading;
    try {
      read = readRequest(request, received);
    } catch (error) {
      return refuse(received, error);
    }
    const { hashBy, ...reading } = read;
    // A HEAD gets no codes, so it is not recorded as an export.
    if (route.download === "codes" && isHead) reading.args["is_head"] = true;
    const call = { credential_id: credentialId, nonce: caller.nonce, request_id: requestId, ...reading };
    let outcome = await gate.perform(tenantId, call, deadline, route);
    // An equal request may have been recorded while another master key was the current one. This refusal is not
    // recorded, so the call can be made again.
    for (const version of keys.others) {
      if (outcome.code !== "IDEMPOTENCY_KEY_REUSED") break;
      outcome = await gate.perform(tenantId, { ...call, nonce: null, body_hash: hashBy(version) }, deadline, route);
    }
    limiter.countCode(accessKey, outcome);
    // The database has not recorded that there is no such coupon, because a 429 is not recorded. Now it is counted.
    if (route.isWrite && isUnknownCoupon(outcome) && !outcome.isReplay) {
      const counted = { ...call, nonce: null, args: { ...call.args, is_counted: true } };
      outcome = await gate.perform(tenantId, counted, deadline, route);
    }
    if (outcome.status !== 200) return toAnswer(outcome);
    if (route.render !== undefined) {
      const parts = { keys, consoleUrl: consoleUrl.replaceAll("{cell}", `${gate.cellOf(tenantId)}`) };
      return toAnswer({ ...outcome, body: route.render(outcome.body, parts) });
    }
    if (route.download === undefined) return toAnswer(outcome);
    if (route.download === "codes") return exports.open(JSON.parse(outcome.body) as CodesFile, { isHead, deadline });
    const file = JSON.parse(outcome.body) as StatementFile;
    const opened = { ifNoneMatch: request.headers["if-none-match"], isHead, deadline };
    return openDownload({ gate, log, requestId }, file, opened);
  }

  return function operate(request: IncomingMessage, received: Received): Promise<Answer> {
    const { route, caller, requestId } = received;
    const act = () => run(request, received);
    return route.download === "codes" ? exports.bound(caller.credential.tenantId, requestId, act) : act();
  };
}

function toAnswer({ status, code, resource, body, isReplay }: Outcome): Answer {
  return { status, code, resource, body, ...(isReplay && { headers: { "idempotent-replayed": "true" } }) };
}
