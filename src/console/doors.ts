// The two doors of the console. Staff reads the views of schema report. A company reads the same views of schema
// portal, which have its own rows only: each of its connections carries its session, and the database finds whose it
// is. So a page is the same declaration behind both doors, and a query that forgets its scope has no rows or no rights.
import type { Database } from "../database/types.ts";
import type { Page } from "./page.ts";
import type { Session } from "./sessions.ts";

/** Reads in the name of a session. */
export type Reader = Pick<Database, "rows">;
export type Door = { pages: readonly Page[]; reader: Reader; isStaff: boolean };

export type DoorParts = {
  pages: { staff: readonly Page[]; company: readonly Page[] };
  database: Database;
  /** A connection of the portal that carries a session. */
  openPortal: (session: Session) => Database;
};

/** The same query of what a company may see. */
export const toPortal = (text: string): string => text.replaceAll(/\b(report|console)\./g, "portal.");

/** Of companies. Those that were used last stay open. */
const mostConnections = 8;

export function createDoors({ pages, database, openPortal }: DoorParts) {
  const connections = new Map<string, Database>();

  function connectionOf(session: Session): Database {
    const connection = connections.get(session.token) ?? openPortal(session);
    connections.delete(session.token);
    connections.set(session.token, connection);
    const [[oldest, spare]] = connections as unknown as [[string, Database]];
    if (connections.size > mostConnections && connections.delete(oldest)) void spare.end();
    return connection;
  }

  const rows =
    (session: Session): Database["rows"] =>
    (text, params) =>
      connectionOf(session).rows(toPortal(text), params);

  const staff: Door = { pages: pages.staff, reader: database, isStaff: true };

  return {
    of: (session: Session): Door =>
      session.isCompany ? { pages: pages.company, reader: { rows: rows(session) }, isStaff: false } : staff,
    /** Of both doors. */
    paths: [...new Set([...pages.staff, ...pages.company].map((page) => page.path))],
    end: async (): Promise<void> => void (await Promise.all([...connections.values()].map((open) => open.end()))),
  };
}

export type Doors = ReturnType<typeof createDoors>;
