// Attempts a statement against the tables and undoes it.
import type { Session } from "../../src/database/types.ts";

export type Refusal = { sqlState: string; rule: string; message: string };

/** Runs the statements as one transaction, deferred triggers included, and rolls back. Null: nothing refused them. */
export async function attempt(session: Session, sql: string): Promise<Refusal | null> {
  try {
    await session.run(`begin; ${sql}; set constraints all immediate`);
    return null;
  } catch (error) {
    const { code, constraint_name, message } = error as { code: string; constraint_name?: string; message: string };
    return { sqlState: code, rule: constraint_name ?? message, message };
  } finally {
    await session.run("rollback");
  }
}
