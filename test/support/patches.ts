// Calls functions of schema admin as an administrator in psql does, and checks their audit entries and refusals.
import type { Test } from "tap";
import { connect, sqlState } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { fits } from "./fits.ts";
import { newRequestId, startService, type BatchOptions, type Running } from "./service.ts";
import { readState } from "./state.ts";

export type Audit = { action: string; target: string; reason: string | null; tenant: string };
type Coupon = { code: string; id: string };

export type Patches = {
  service: Running;
  admin: Database;
  /** The functions called so far. */
  called: Set<string>;
  patch<T = unknown>(name: string, ...args: unknown[]): Promise<T>;
  /** The last audit entry says who did what and why. */
  isAudited(t: Test, expected: Audit, details?: object): Promise<void>;
  /** Refused with this SQLSTATE or by this rule of a table. Nothing changes, and no audit entry is written. */
  isRefused(t: Test, by: string, name: string, ...args: unknown[]): Promise<void>;
  /** Refuses each bad reason, and each unknown value of an argument by its index. The last argument is the reason. */
  refusesBadArguments(t: Test, name: string, args: string[], unknown: Record<number, string[]>): Promise<void>;
  makeCoupon(template?: string, options?: BatchOptions): Promise<Coupon>;
  /** A POST of ten_a at mch_a. */
  post(path: string, body: object): ReturnType<ReturnType<Running["as"]>["post"]>;
};

const client = "psql of Ada";

export async function startPatches(t: Test, tenants: object[]): Promise<Patches> {
  const service = await startService(t, { tenants });
  const admin = connect(service.address, { name: client, role: "coupon_admin", max: 1 });
  t.teardown(() => admin.end());
  const called = new Set<string>();
  const a = service.as("ak_a");

  async function patch<T = unknown>(name: string, ...args: unknown[]): Promise<T> {
    called.add(name);
    const placeholders = args.map((_, index) => `$${index + 1}`).join(", ");
    const [row] = await admin.rows<{ answer: T }>(`select admin.${name}(${placeholders}) as answer`, args);
    return row!.answer;
  }

  const checks = createChecks(service, patch);
  return {
    service,
    admin,
    called,
    patch,
    ...checks,
    async makeCoupon(template = "tpl_fixed", options = {}) {
      const { codes, couponIds } = await service.makeBatch(a, template, 1, options);
      return { code: codes[0]!, id: couponIds[0]! };
    },
    post: (path, body) => a.post(path, { request_id: newRequestId(), merchant: "mch_a", ...body }),
  };
}

function createChecks(
  service: Running,
  patch: Patches["patch"],
): Pick<Patches, "isAudited" | "isRefused" | "refusesBadArguments"> {
  const isAudited: Patches["isAudited"] = async (t, expected, details = {}) => {
    const [last] = await service.owner.rows(
      `select a.*, t.external_id as tenant, session_user as me
       from core.audit a join core.tenant t using (tenant_id) order by a.audit_id desc limit 1`,
    );
    fits(
      t,
      last,
      { ...expected, client, login: last!["me"] as string, details },
      "the audit entry says who, what and why",
    );
  };

  const isRefused: Patches["isRefused"] = async (t, by, name, ...args) => {
    const before = await readState(service.owner, { withRequests: true });
    const error = await patch(name, ...args).then(
      () => null,
      (reason: unknown) => reason,
    );
    t.ok(
      [sqlState(error), (error as { constraint_name?: string } | null)?.constraint_name].includes(by),
      `${name} ${args.join(", ")}: ${(error as Error | null)?.message ?? "not refused"}`,
    );
    t.strictSame(await readState(service.owner, { withRequests: true }), before, "nothing changes");
  };

  const refusesBadArguments: Patches["refusesBadArguments"] = async (t, name, args, unknown) => {
    for (const reason of [null, "", "  ", "\t\u00a0\n", "x".repeat(1_001)])
      await isRefused(t, "CP400", name, ...args, reason);
    for (const [index, values] of Object.entries(unknown)) {
      for (const value of values) await isRefused(t, "CP404", name, ...args.with(Number(index), value), "why");
    }
  };

  return { isAudited, isRefused, refusesBadArguments };
}

/** The functions that each file of test/db/admin tests. */
export const functionsByFile = {
  coupons: ["void_coupon", "void_batch", "release_lock", "extend_coupon"],
  access: [
    "add_delegate",
    "remove_delegate",
    "revoke_credential",
    "open_export",
    "read_export_page",
    "destroy_codes",
    "has_tenants",
  ],
  feeds: [
    "set_webhook_secret",
    "disable_webhook",
    "enable_webhook",
    "replay_parked",
    "replay_event",
    "replay_range",
    "note_restore",
  ],
  keys: ["forget_key"],
};

/** To be the last test of a file: it called each of its functions, and every function of admin has a file. */
export async function everyFunctionIsCalled(
  t: Test,
  { service, called }: Patches,
  file: keyof typeof functionsByFile,
): Promise<void> {
  t.strictSame([...called].sort(), functionsByFile[file].toSorted());
  const names = await service.owner.rows<{ name: string }>(
    "select p.proname as name from pg_proc p where p.pronamespace = 'admin'::regnamespace and p.provolatile = 'v'",
  );
  const listed = Object.values(functionsByFile).flat();
  t.strictSame(
    names.map(({ name }) => name).filter((name) => !listed.includes(name)),
    ["apply", "test_webhook"],
    "those of the commands apply and webhooks -- test have their own tests",
  );
}
