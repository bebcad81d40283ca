// Calls functions of schema admin as an administrator in psql does, and checks their audit entries and refusals.
import type { Test } from "tap";
import { connect, sqlState } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { fits } from "./fits.ts";
import type { Scenario } from "./scenario.ts";
import { readState } from "./state.ts";

/** What differs from the usual audit entry. */
type Audit = { target: string; action?: string; reason?: null; tenant?: string | null; details?: object };

export type Patches = ReturnType<typeof startPatches>;

const client = "psql of Ada";

export function startPatches(t: Test, { address, owner }: Pick<Scenario, "address" | "owner">) {
  const admin: Database = connect(address, { name: client, role: "coupon_admin", max: 1 });
  t.teardown(() => admin.end());
  /** The functions called so far. */
  const called = new Set<string>();

  async function patch<T = unknown>(name: string, ...args: unknown[]): Promise<T> {
    called.add(name);
    const placeholders = args.map((_, index) => `$${index + 1}`).join(", ");
    const [row] = await admin.rows<{ answer: T }>(`select admin.${name}(${placeholders}) as answer`, args);
    return row!.answer;
  }

  /** Calls a patch whose last argument is the reason. The last audit entry says who did what and why. */
  async function audited<T = unknown>(t: Test, audit: Audit, name: string, ...args: unknown[]): Promise<T> {
    const answer = await patch<T>(name, ...args);
    const [last] = await owner.rows(
      `select a.*, t.external_id as tenant, session_user as me
       from core.audit a left join core.tenant t using (tenant_id) order by a.audit_id desc limit 1`,
    );
    const usual = { action: name, reason: String(args.at(-1)).trim(), tenant: "ten_a", details: {} };
    fits(t, last, { ...usual, client, login: last!["me"] as string, ...audit }, `the audit entry of ${name}`);
    return answer;
  }

  /** Refused with this SQLSTATE or by this rule of a table. Nothing changes, and no audit entry is written. */
  async function isRefused(t: Test, by: string, name: string, ...args: unknown[]): Promise<void> {
    const before = await readState(owner, { withRequests: true });
    const error = await patch(name, ...args).then(
      () => null,
      (reason: unknown) => reason as { constraint_name?: string; message: string },
    );
    const said = `${name} ${args.join(", ")}: ${error?.message ?? "not refused"}`;
    t.ok([sqlState(error), error?.constraint_name].includes(by), said);
    t.strictSame(await readState(owner, { withRequests: true }), before, "nothing changes");
  }

  /** Refuses each bad reason, and each unknown value of an argument by its index. The last argument is the reason. */
  async function refusesBadArguments(t: Test, name: string, args: unknown[], unknown: Record<number, string[]> = {}) {
    for (const reason of [null, "", "  ", "\t\u00a0\n", "x".repeat(1_001)])
      await isRefused(t, "CP400", name, ...args, reason);
    for (const [index, values] of Object.entries(unknown))
      for (const value of values) await isRefused(t, "CP404", name, ...args.with(Number(index), value), "why");
  }

  return { admin, called, patch, audited, isRefused, refusesBadArguments };
}
