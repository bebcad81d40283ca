// The app on a port with a gate that needs no database, to test what is decided before the database.
import { Writable } from "node:stream";
import type { Test } from "tap";
import { createApp } from "../../src/http/app.ts";
import { routes } from "../../src/http/routes/table.ts";
import { defaultLimits, type Limits } from "../../src/config/config.ts";
import type { Call, CodesFile, Gate, Outcome, Variant } from "../../src/gate/gate.ts";
import { batchKey, lookupHash, makeCode } from "../../src/crypto/coupon-code.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { createLog } from "../../src/common/log.ts";
import { credentialPurpose, seal } from "../../src/crypto/seal.ts";
import { listen } from "../../src/http/listener.ts";
import { closeIdleConnections, createClient, type CallOptions, type Client, type Reply } from "./client.ts";
import { leaveUnchecked, noteCredentials } from "./described-answers.ts";

export const keys = parseMasterKeys(Buffer.alloc(32, 7).toString("base64"));
export const lockPath = "/v1/coupons/lock";
export const secret = "test_secret_0123456789abcdefghijklmnop";
export const code = makeCode(keys, "1", batchKey(keys, "1", Buffer.alloc(16, 1)), 1);

export type Stub = {
  url: string;
  // The calls that reached the database, in order.
  calls: Call[];
  lookups: string[];
  log: Record<string, unknown>[];
  asA: Client;
  asB: Client;
  /** A lock by asA, with fields added to the usual ones or instead of them. */
  lock(more?: Record<string, unknown>, options?: CallOptions): Promise<Reply>;
  stop(): Promise<void>;
};

/** The database's answer to pull_events, which the route formats. */
export const emptyFeed: Outcome = {
  status: 200,
  code: null,
  resource: null,
  body: '{"events":[],"next_cursor":"cur_AAAAAAAAAAA"}',
  isReplay: false,
};
/** The database's answer to export_codes: a batch with one code. */
export const oneCode: Outcome = {
  status: 200,
  code: null,
  resource: null,
  body: JSON.stringify({
    tenant_id: 7,
    batch_id: 1,
    batch: "bat_a",
    salt: Buffer.alloc(16, 1).toString("hex"),
    key_version: "1",
    total_count: 1,
    public_key: "age1vn0xjd23xuvuu6nw07zxat9v76w3cvj04z52uw63mtcq27wdz3csrgajn7",
  } satisfies CodesFile),
  isReplay: false,
};
export const done: Outcome = { status: 200, code: null, resource: null, body: '{"ok": true}', isReplay: false };
const variants: Record<string, Variant> = { ak_a: "A", ak_b: "B" };
noteCredentials({
  tenants: Object.entries(variants).map(([access_key, variant]) => ({ variant, credentials: [{ access_key }] })),
});

const link = `{"ok":true,"portal_link":"lnk_${"0".repeat(26)}","expires_at":"2026-01-31T12:00:00.000Z"}`;
/** Answers that serve completes, by operation. */
export const rendered: Record<string, Outcome> = { pull_events: emptyFeed, open_portal: { ...done, body: link } };

/**
 * Remembers nonces; every other call succeeds. `overrides` replace members of the stub's gate. `list` has the master
 * key of this file among others.
 */
export async function startStub(
  t: Test,
  overrides: Partial<Gate> = {},
  limited: Partial<Limits> = {},
  list = keys,
): Promise<Stub> {
  const { gate, calls, lookups } = createStubGate(overrides);
  const { logger, log } = createStubLog();
  const readiness = async (deadline: number) => ({
    isReady: (await gate.readVersion(deadline)).migration === "1",
    otherCells: (await gate.readCells(deadline)).map(({ cell }) => cell),
  });
  const limits = { ...defaultLimits, ...limited };
  const handler = createApp({ routes, gate, keys: list, log: logger, limits, readiness });
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
  listening.serve({ handler });
  const { url, stop } = listening;
  // The stub's gate decides nothing.
  leaveUnchecked(url, [done.status]);
  t.teardown(() => {
    closeIdleConnections();
    return stop();
  });
  const as = (accessKey: string) => createClient({ url, accessKey, secret });
  const [asA, asB] = [as("ak_a"), as("ak_b")];
  const lock: Stub["lock"] = (more, options) => asA.post(lockPath, { ...bodies[lockPath], ...more }, options);
  return { url, calls, lookups, log, asA, asB, lock, stop };
}

function createStubGate(overrides: Partial<Gate>): Pick<Stub, "calls" | "lookups"> & { gate: Gate } {
  const [calls, lookups]: [Call[], string[]] = [[], []];
  const nonces = new Set<string>();
  const spend = ({ nonce, request_id }: Pick<Call, "nonce" | "request_id">): Outcome | null => {
    const isNew = !nonces.has(nonce!);
    nonces.add(nonce!);
    if (isNew) return null;
    const body = { code: "NONCE_REUSED", message: "used", request_id, details: null };
    return { ...done, status: 401, code: body.code, body: JSON.stringify(body) };
  };
  const gate: Gate = {
    async findCredential(accessKey) {
      lookups.push(accessKey);
      const variant = variants[accessKey];
      if (variant === undefined) return null;
      return {
        tenant_id: variant === "A" ? 7 : 8,
        credential_id: variant === "A" ? 1 : 2,
        variant,
        amount_unit: "major",
        sealed_secret: seal(keys, credentialPurpose(accessKey), secret),
      };
    },
    async perform(_, call) {
      const refused = spend(call);
      if (refused !== null) return refused;
      calls.push(call);
      if (call.operation === "export_codes") return oneCode;
      return rendered[call.operation] ?? done;
    },
    spendNonce: async (_, call) => spend(call),
    statementPage: async () => [],
    noteUses: async () => 0,
    codesPage: async () => [
      { number: 1, code_attempt: 0, lookup_hash: lookupHash(keys, code), coupon_id: `cpn_${"0".repeat(26)}` },
    ],
    isDiskFull: () => false,
    cellOf: () => 1,
    readVersion: async () => ({ migration: "1", code: "1", cell: 1, server_cell: 1 }),
    readCells: async () => [],
    registerKeys: async () => [],
    checkSession: async () => {},
    async end() {},
    ...overrides,
  };
  return { gate, calls, lookups };
}

export function createStubLog(level = "debug") {
  const log: Stub["log"] = [];
  const lines = new Writable({
    write(chunk, _, next) {
      for (const line of String(chunk).trim().split("\n")) log.push(JSON.parse(line) as Record<string, unknown>);
      next();
    },
  });
  return { logger: createLog(level, lines), log };
}

// A valid body for each POST.
export const bodies: Record<string, Record<string, unknown>> = {
  "/v1/coupons/lock": { request_id: "r-1", coupon: code, merchant: "mch_1" },
  "/v1/coupons/redeem": { request_id: "r-1", coupon: code, merchant: "mch_1" },
  "/v1/coupons/confirm": { request_id: "r-1", lock_request_id: "r-0", coupon: code, merchant: "mch_1" },
  "/v1/coupons/cancel": { request_id: "r-1", lock_request_id: "r-0", coupon: code },
  "/v1/coupons/void": { request_id: "r-1", coupon: code, merchant: "mch_1" },
  "/v1/coupons/query": { coupon: code, merchant: "mch_1" },
  "/v1/redemptions/reverse": { request_id: "r-1", redemption: "red_1" },
  "/v1/batches": { request_id: "r-1", template: "tpl_1", total_count: 10 },
  "/v1/batches/allocate": { request_id: "r-1", batch: "bat_1" },
  "/v1/batches/suspend": { request_id: "r-1", batch: "bat_1" },
  "/v1/batches/resume": { request_id: "r-1", batch: "bat_1" },
  "/v1/batches/recall": { request_id: "r-1", batch: "bat_1" },
  "/v1/sandbox/close_day": { request_id: "r-1" },
  "/v1/webhook/replay": { request_id: "r-1", event_id: "evt_1" },
  "/v1/webhook/test": { request_id: "r-1", event_type: "coupon.redeemed" },
  "/v1/portal": { request_id: "r-1" },
};
