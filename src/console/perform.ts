// A change from a page: a function of schema admin, which audits it under the name of the connection.
import { sqlState } from "../database/connect.ts";
import type { Database } from "../database/types.ts";
import type { Action, Outcome, Values } from "./page.ts";
import { bind } from "./query.ts";

/** Of a statement, or of its wait for a lock. */
export const isTimeout = (error: unknown): boolean => ["57014", "55P03"].includes(sqlState(error) ?? "");

export async function perform(
  own: Database,
  { call, isWithoutReason = false }: Action,
  values: Values,
): Promise<Outcome> {
  try {
    if (typeof call === "function") return await call(own, values);
    const { text, params } = bind(`select ${call}`, values);
    await own.rows(text, params);
    return isWithoutReason ? { error: null, found: "Done." } : { error: null };
  } catch (error) {
    if (isTimeout(error)) return { error: "This took too long, so it was given up. Nothing has changed." };
    // CP…: refused by a rule. 22 and 23: a value is wrong.
    if (!/^(CP|22|23)/.test(sqlState(error) ?? "")) throw error;
    return { error: (error as Error).message };
  }
}
