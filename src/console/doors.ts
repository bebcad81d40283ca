// The two doors of the console. Staff reads the views of schema report. A company reads the same views of schema
// portal, which have its own rows only: each of its connections carries its session, and the database finds whose it
// is. So a page is the same declaration behind both doors, and a query that forgets its scope has no rows or no rights.
import { HTTPError } from "h3";
import type { Database } from "../database/types.ts";
import type { Page } from "./page.ts";
import { createPortalConnections } from "./portal-connections.ts";
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

export function createDoors({ pages, database, openPortal }: DoorParts) {
  const portal = createPortalConnections(openPortal);

  const readerOf = (session: Session): Reader => ({
    async rows<Row>(text: string, params?: readonly unknown[]) {
      const rows = await portal.rows<Row>(session, toPortal(text), params);
      if (rows.length > 0) return rows;
      // Nothing is what an ended session sees, and a CSV would look complete.
      const [signedIn] = await portal.rows<{ tenant: string | null }>(session, "select portal.find_tenant() as tenant");
      if (signedIn!.tenant === null) throw new HTTPError({ status: 401 });
      return rows;
    },
  });

  const staff: Door = { pages: pages.staff, reader: database, isStaff: true };

  return {
    of: (session: Session): Door =>
      session.isCompany ? { pages: pages.company, reader: readerOf(session), isStaff: false } : staff,
    /** Of both doors. */
    paths: [...new Set([...pages.staff, ...pages.company].map((page) => page.path))],
    end: portal.end,
  };
}

export type Doors = ReturnType<typeof createDoors>;
