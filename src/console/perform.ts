// A change from a page: a function of schema admin, which audits it under the name of the connection.
import { sqlState } from "../database/connect.ts";
import type { Database } from "../database/types.ts";
import type { Action } from "./page.ts";
import { bind, type Values } from "./query.ts";

/** `error`: why the database refused it; null: it is done. */
export type Outcome = { error: string | null };

export async function perform(own: Database, { call }: Action, values: Values): Promise<Outcome> {
  const { text, params } = bind(`select ${call}`, values);
  try {
    await own.rows(text, params);
    return { error: null };
  } catch (error) {
    // CP…: refused by a rule. 22 and 23: a value is wrong.
    if (!/^(CP|22|23)/.test(sqlState(error) ?? "")) throw error;
    return { error: (error as Error).message };
  }
}
