// Commands that are given a router work in the cell of the tenant, batch or access key that they name. All cells are
// asked: what a router knows is what `serve` has used there.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import { ConfigError } from "../config/config.ts";
import type { Address } from "../config/database-address.ts";
import { openSession, sqlState } from "../database/connect.ts";
import type { Database, Session } from "../database/types.ts";
import { parseConnection } from "./router-database.ts";

const connectMs = 5_000;
const answerMs = 10_000;
// While another `apply` holds it.
const lockMs = 60_000;

/** With the login that the command has for the router. */
export type CellAddress = { cell: number; address: Address };
/** Leads a command from a router to the cell where it acts. */
export type Route = <T>(cells: CellAddress[], act: (cell: Address) => Promise<T>) => Promise<T>;
/** `has`: which of the IDs live there. `problem`: why the cell could not be asked. */
export type Asked = CellAddress & { has: Set<string>; problem: string | null };

export async function listCellAddresses(router: Database, { user, password }: Address): Promise<CellAddress[]> {
  const cells = await router
    .rows<{ cell: number; connection: string }>("select cell, connection from router.list_connections()")
    .catch(explain);
  const login = { ...(user !== undefined && { user }), ...(password !== undefined && { password }) };
  return cells.map(({ cell, connection }) => ({ cell, address: { ...login, ...parseConnection(connection) } }));
}

// undefined_function, insufficient_privilege
function explain(error: unknown): never {
  if (!["42883", "42501"].includes(sqlState(error) ?? "")) throw error;
  throw new ConfigError("the router is of an older version: run `coupon router migrate`");
}

/** The cell of an ID. undefined: the command names none. */
export const toCellOf =
  (id: string | undefined): Route =>
  async (cells, act) => {
    if (id === undefined) {
      const numbers = cells.map(({ cell }) => cell).join(", ");
      throw new ConfigError(`DATABASE_URL is a router (cells: ${numbers}): name a tenant, or give the URL of one cell`);
    }
    return act(chooseHome(await Promise.all(cells.map((cell) => askOnce(cell, id))), id));
  };

async function askOnce(cell: CellAddress, id: string): Promise<Asked> {
  const session = openCellSession(cell);
  try {
    return await askCell(cell, session, [id]);
  } finally {
    await session.end();
  }
}

function chooseHome(cells: Asked[], id: string): Address {
  const [home, other] = cells.filter(({ has }) => has.has(id));
  if (other !== undefined) throw new Error(`both cell ${home!.cell} and cell ${other.cell} say that ${id} lives there`);
  if (home !== undefined) return home.address;
  refuseUnasked(cells, id);
  throw new Error(`no cell has ${id}`);
}

/** For an ID that no other cell has. */
export function refuseUnasked(cells: Asked[], id: string): void {
  const unasked = cells.find(({ problem }) => problem !== null);
  if (unasked === undefined) return;
  throw new Error(`cell ${unasked.cell} cannot be asked whether it has ${id}: ${unasked.problem}`);
}

export const openCellSession = ({ address }: CellAddress): Session =>
  openSession(address, { name: "coupon find cell", role: "coupon_admin" });

/** lock: an advisory lock that the session takes first, and keeps. */
export async function askCell(cell: CellAddress, { rows }: Session, ids: string[], lock?: string): Promise<Asked> {
  try {
    // The driver tries to connect for as long as it has a statement to send.
    await within(connectMs, rows("select"));
    if (lock !== undefined) await within(lockMs, rows("select pg_advisory_lock($1)", [lock]));
    const asking = rows<{ id: string }>("select id from admin.find_local($1::text[]) id", [ids]);
    return { ...cell, has: new Set((await within(answerMs, asking)).map(({ id }) => id)), problem: null };
  } catch (error) {
    return { ...cell, has: new Set(), problem: error instanceof Unavailable ? "no answer" : (error as Error).message };
  }
}

const within = <T>(ms: number, running: Promise<T>): Promise<T> => beforeDeadline(running, performance.now() + ms);
