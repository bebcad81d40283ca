// The connections of companies, each of which carries one session. Those that were used last stay open.
import { HTTPError } from "h3";
import type { Database } from "../database/types.ts";
import type { Session } from "./sessions.ts";

/** Also while some are ending: the tills keep the others. */
const most = 8;
const mostWaiting = 50;

type Held = { database: Database; uses: number };

export function createPortalConnections(open: (session: Session) => Database) {
  const held = new Map<string, Held>();
  const waiting: (() => void)[] = [];
  let count = 0;

  function keep(token: string, connection: Held): Held {
    held.delete(token);
    held.set(token, connection);
    connection.uses += 1;
    return connection;
  }

  async function take(session: Session): Promise<Held> {
    for (;;) {
      const own = held.get(session.token);
      if (own !== undefined) return keep(session.token, own);
      if (count < most) {
        count += 1;
        return keep(session.token, { database: open(session), uses: 0 });
      }
      const [token, idle] = [...held].find(([, { uses }]) => uses === 0) ?? [];
      if (token !== undefined) {
        held.delete(token);
        await idle!.database.end();
        count -= 1;
      } else if (waiting.length < mostWaiting) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else {
        throw new HTTPError({ status: 503 });
      }
    }
  }

  return {
    async rows<Row>(session: Session, text: string, params?: readonly unknown[]): Promise<Row[]> {
      const connection = await take(session);
      try {
        return await connection.database.rows<Row>(text, params);
      } finally {
        connection.uses -= 1;
        waiting.shift()?.();
      }
    },
    end: async (): Promise<void> => void (await Promise.all([...held.values()].map(({ database }) => database.end()))),
  };
}
