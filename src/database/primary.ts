// Finds the server that takes writes, if DATABASE_URL names several or asks for it, and keeps connections there. Each
// connection that is opened asks the servers again, so a failover needs no news and no restart.
//
// The driver could search too, but in vain: with `read-write` it believes default_transaction_read_only, which our
// connections set, so a standby passes. With several hosts it forgets that one refused: while none runs, it tries again
// without a pause, and the statement waits forever. And it connects again to the server it was connected to.
//
// An old primary that runs again before it has become a standby says that it takes writes. Each promotion begins a new
// timeline, so the server with the highest one counts. That is no fence: who only reaches the old one gets the old one.
// A standby that a split has promoted is another cell, whose number it says.
import { setTimeout as sleep } from "node:timers/promises";
import { type Address, listServers } from "../config/database-address.ts";
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Database, Session } from "./types.ts";

/** A server that takes writes: its timeline, and the number of its cell. */
export type Primary = { timeline: number; cell: number };
/** Returns the server that takes writes. Rejects with CONNECTION_NO_PRIMARY if none does. */
export type Find = () => Promise<Address>;
type FinderParts = {
  /** null: the server is a standby. */
  ask: (server: Address) => Promise<Primary | null>;
  isConnectionError: (error: unknown) => boolean;
};

const answerWithinMs = 3_000;
// How long the others may still answer once one takes writes. A server that is gone does not answer.
const graceMs = 200;
// Connections that open within this time share an answer: all connections of a program open at the same time.
const sharedForMs = { found: 1_000, failed: 250 };

export function createFinder(address: Address, { ask, isConnectionError }: FinderParts): Find {
  const servers = listServers(address);
  // The first one that was found: a program stays in its cell.
  let cell: number | undefined;
  let last: { found: Promise<Address>; until: number } | undefined;

  async function search(): Promise<Address> {
    const deadline = performance.now() + answerWithinMs;
    const primaries = servers.map(async (server) => {
      const primary = await beforeDeadline(ask(server), deadline).catch((error: unknown) => {
        if (!(error instanceof Unavailable) && !isConnectionError(error)) throw error;
        throw new Unavailable(`${nameOf(server)}: ${(error as Error).message || "no connection"}`);
      });
      if (primary === null) throw new Unavailable(`${nameOf(server)} is a standby`);
      if (cell !== undefined && primary.cell !== cell)
        throw new Unavailable(`${nameOf(server)} is cell ${primary.cell}, and this program works for cell ${cell}`);
      return { server, ...primary };
    });
    await Promise.any(primaries).catch(({ errors }: AggregateError) => refuse(errors));
    const grace = sleep(graceMs, null, { ref: false });
    const answers = primaries.map((one) => Promise.race([one.catch(() => null), grace]));
    const found = (await Promise.all(answers)).filter((answer) => answer !== null);
    const [newest] = found.sort((a, b) => b.timeline - a.timeline);
    const other = found.find((one) => one.cell !== newest!.cell);
    if (other !== undefined)
      throw noPrimary(`both take writes: ${nameOf(other.server)} and ${nameOf(newest!.server)} are different cells`);
    cell = newest!.cell;
    return newest!.server;
  }

  return () => {
    const now = performance.now();
    if (last !== undefined && now < last.until) return last.found;
    const round = { found: search(), until: now + sharedForMs.found };
    last = round;
    round.found.catch(() => (round.until = performance.now() + sharedForMs.failed));
    return round.found;
  };
}

const nameOf = ({ host, port }: Address): string => `${host}:${port}`;

// An error of the server itself, such as a wrong password, says more than that none takes writes.
function refuse(errors: unknown[]): never {
  const other = errors.find((error) => !(error instanceof Unavailable));
  if (other !== undefined) throw other;
  const reasons = errors.map((error) => (error as Error).message).join("; ");
  throw noPrimary(`no server takes writes: ${reasons}`);
}

const noPrimary = (message: string): Error => Object.assign(new Error(message), { code: "CONNECTION_NO_PRIMARY" });

/** One connection of the driver. */
export type Connection = Database & Pick<Session, "run">;
type FollowParts = {
  find: Find;
  /** Opens a connection that calls `onLost` when it is lost. It may connect again then, but to the same server. */
  openAt: (server: Address, onLost: () => void) => Connection;
  onLost: () => void;
  /** Whether a statement failed because the server takes no writes. */
  isReadOnly: (error: unknown) => boolean;
};

/** A connection that opens at the server that takes writes, at its first use and again after each loss. */
export function followPrimary({ find, openAt, onLost, isReadOnly }: FollowParts): Connection {
  let current: Promise<Connection> | undefined;
  let isEnded = false;

  function open(): Promise<Connection> {
    const forget = (): void => {
      if (current === opening) current = undefined;
      onLost();
    };
    const opening = find().then((server) => openAt(server, forget));
    opening.catch(forget);
    return opening;
  }

  async function use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    if (isEnded) throw Object.assign(new Error("the connection is closed"), { code: "CONNECTION_ENDED" });
    const used = (current ??= open());
    const connection = await used;
    try {
      return await work(connection);
    } catch (error) {
      if (isReadOnly(error) && current === used) {
        current = undefined;
        void connection.end();
      }
      throw error;
    }
  }

  return {
    rows: <T>(text: string, params?: readonly unknown[], pipe?: object) =>
      use((connection) => connection.rows<T>(text, params, pipe)),
    run: (text) => use((connection) => connection.run(text)),
    async end() {
      isEnded = true;
      await (await current?.catch(() => null))?.end();
    },
  };
}
