// Moves tenants to a new cell, which is the promoted standby of the cell that they leave. Each step is one transaction,
// and reads from the two databases what was done before, so a split that was interrupted is run again. The order of the
// steps was checked by a model: test/tools/model/split.
import { setTimeout as sleep } from "node:timers/promises";
import { beforeDeadline } from "../common/deadline.ts";
import { ConfigError } from "../config/config.ts";
import type { Address } from "../config/database-address.ts";
import { openSession } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import { checkSides, type Sides } from "./split-checks.ts";

export type Split = {
  /** The cell that the tenants leave, and its standby, each with the login of a superuser. */
  old: Address;
  copy: Address;
  tenants: readonly string[];
  /** The number of the new cell. */
  to: number;
  reason: string;
  log: (line: string) => void;
};
type Moving = { tenant: string; home: number; attempt: number | null; drained: number | null };

/** Calls that began before the fence must end within this time, and the standby must follow. */
const drainWithinMs = 3_000;
// No step takes longer, except when a synchronous standby of the old cell is away: then it is better to stop.
const options = { name: "coupon cells split", statementTimeoutMs: 10_000 };

export async function split(parts: Split): Promise<void> {
  const sides: Sides = { old: openSession(parts.old, options), copy: openSession(parts.copy, options) };
  try {
    await checkSides(sides, parts.to);
    if (!(await hasLeft(sides.old, parts))) {
      const attempt = await copyAll(sides, parts);
      await sides.old.rows("select admin.release_tenants($1, $2::text[], $3)", [attempt, parts.tenants, parts.to]);
      parts.log(`they live in cell ${parts.to}`);
    }
    await requireReplication(sides.old);
    await openAll(sides.copy, await findAttempt(sides.old, parts.tenants), parts);
    // Only now is a copy of their rows no longer needed.
    await sides.old.rows("select admin.end_split($1::text[])", [parts.tenants]);
    await sides.copy.rows("select admin.end_split(null)");
  } finally {
    await Promise.all([sides.old.end(), sides.copy.end()]);
  }
}

/** Gives up a split. Until the tenants live in the new cell, that is always possible. */
export async function goBack(parts: Split): Promise<void> {
  const { tenants, to, log } = parts;
  const [old, copy] = [openSession(parts.old, options), openSession(parts.copy, options)];
  try {
    const [cell] = await old.rows<{ number: number }>("select core.read_cell()::int as number");
    const away = (await listMoving(old, tenants)).find(({ home }) => home !== cell!.number);
    if (away !== undefined)
      throw new ConfigError(`${away.tenant} lives in cell ${away.home}: run the split again, without --back`);
    const problem = await refuseServed(copy, parts);
    await openAll(old, await findAttempt(old, tenants), parts);
    if (problem === null) await forgetNumber(copy, parts);
    else log(`the standby could not be asked (${problem}): if it has coupon.cell = '${to}', take that out`);
  } finally {
    await Promise.all([old.end(), copy.end()]);
  }
  log("the split is given up. A standby that was promoted for it cannot be used: shut it down, and build a new one");
}

// The old cell may have lost the end of a split in a failover. Returns why the copy could not be asked.
async function refuseServed(copy: Session, { tenants, to }: Split): Promise<string | null> {
  // The driver would try to connect forever.
  const asked = beforeDeadline(listMoving(copy, tenants), performance.now() + drainWithinMs);
  const moving = await asked.catch((error: Error) => error.message);
  if (typeof moving === "string") return moving;
  const served = moving.find(({ home, attempt }) => home === to && attempt === null);
  if (served !== undefined)
    throw new ConfigError(
      `cell ${to} serves ${served.tenant}: the old cell has lost the end of the split, see docs/restore.md`,
    );
  return null;
}

// Returns the attempt when the new cell has everything of the tenants.
async function copyAll(sides: Sides, parts: Split): Promise<number> {
  const { old, copy } = sides;
  const attempt = await close(sides, parts);
  if (await isStandby(copy)) {
    await drain(old, attempt, parts);
    await follow(sides, attempt, parts);
    await setNumber(sides, attempt, parts);
    // Nothing of the above is undone by a failover of the old cell.
    await requireReplication(old);
    const [promotion] = await copy.rows<{ is_done: boolean }>("select pg_promote(true, 8) as is_done");
    if (!promotion!.is_done) throw new ConfigError("the standby is not promoted yet: run the split again");
    parts.log("the standby is promoted");
  }
  await copy.rows("select admin.take_tenants($1, $2::text[])", [attempt, parts.tenants]);
  const [nonces] = await old.rows<{ all: string }>("select admin.read_nonces($1)::text as all", [attempt]);
  await copy.rows("select admin.write_nonces($1::text::jsonb)", [nonces!.all]);
  return attempt;
}

async function listMoving(session: Session, tenants: readonly string[]): Promise<Moving[]> {
  const moving = await session.rows<Moving>("select * from admin.list_moving($1::text[])", [tenants]);
  const missing = tenants.filter((each) => !moving.some(({ tenant }) => tenant === each));
  if (missing.length > 0) throw new ConfigError(`the cell has no tenant ${missing.join(", ")}`);
  return moving;
}

/** Returns the attempt that the tenants share, or null if all are open. */
async function findAttempt(session: Session, tenants: readonly string[]): Promise<number | null> {
  const moving = await listMoving(session, tenants);
  const attempts = new Set(moving.map(({ attempt }) => attempt));
  const other = moving.find(({ tenant }) => !tenants.includes(tenant))?.tenant;
  if (attempts.size > 1 || other !== undefined)
    throw new ConfigError(
      `the tenants are not of one split${other === undefined ? "" : `, which has ${other} too`}: name the same ones ` +
        "as before, or go --back with those",
    );
  return [...attempts][0] ?? null;
}

async function hasLeft(old: Session, { tenants, to }: Split): Promise<boolean> {
  const moving = await listMoving(old, tenants);
  return moving.every(({ home }) => home === to);
}

async function isStandby(session: Session): Promise<boolean> {
  const [server] = await session.rows<{ is_standby: boolean }>("select pg_is_in_recovery() as is_standby");
  return server!.is_standby;
}

// The number of the new cell, which its server has from the promotion on.
async function setNumber({ old, copy }: Sides, attempt: number, parts: Split): Promise<void> {
  if ((await readCell(parts.copy)) === parts.to) return;
  await changeNumber(copy, `set coupon.cell = '${parts.to}'`);
  const advice = `set coupon.cell = '${parts.to}' in the configuration of the standby, and reload it`;
  await untilDone(old, attempt, parts, async () => ((await readCell(parts.copy)) === parts.to ? null : advice));
}

// So that a failover of the old cell to this standby works.
async function forgetNumber(copy: Session, { copy: address, to }: Split): Promise<void> {
  if ((await isStandby(copy)) && (await readCell(address)) === to) await changeNumber(copy, "reset coupon.cell");
}

async function changeNumber(copy: Session, change: string): Promise<void> {
  // PostgreSQL 15 knows the name once a session has used it.
  await copy.run("set coupon.cell = '1'");
  await copy.run(`alter system ${change}`);
  await copy.run("reset coupon.cell");
  await copy.rows("select pg_reload_conf()");
}

/** The number that new sessions of a server see. */
async function readCell(address: Address): Promise<number> {
  const session = openSession(address, options);
  try {
    const [row] = await session.rows<{ cell: number }>("select core.read_server_cell()::int as cell");
    return row!.cell;
  } finally {
    await session.end();
  }
}

async function close({ old, copy }: Sides, parts: Split): Promise<number> {
  const found = await findAttempt(old, parts.tenants);
  if (!(await isStandby(copy)) && (found === null || (await findAttempt(copy, parts.tenants)) !== found))
    throw new ConfigError("the standby was promoted before, and lacks what came later: build a new one");
  if (found !== null) return found;
  const [row] = await old.rows<{ attempt: number }>("select admin.close_tenants($1::text[], $2, $3) as attempt", [
    parts.tenants,
    parts.to,
    parts.reason,
  ]);
  parts.log("the tenants are closed: their calls get 503");
  return row!.attempt;
}

type Running = { id: string; pid: number; program: string };

// Every transaction that is not newer than the fence ends. After a repeated start this waits for some more than that.
async function drain(old: Session, attempt: number, parts: Split): Promise<void> {
  const list = () =>
    old.rows<Running>(
      `select l.virtualtransaction as id, a.pid, a.application_name as program
       from pg_locks l
       join pg_stat_activity a on a.pid = l.pid
       where l.locktype = 'virtualxid' and a.datname = current_database()
         and coalesce(a.backend_type, 'client backend') = 'client backend'
         and a.pid <> pg_backend_pid()`,
    );
  const before = new Set((await list()).map(({ id }) => id));
  await untilDone(old, attempt, parts, async () => {
    const left = (await list()).find(({ id }) => before.has(id));
    return left === undefined ? null : `a transaction of ${left.program} (process ${left.pid}) does not end`;
  });
  await old.rows("select admin.mark_drained($1)", [attempt]);
  parts.log("every call has ended");
}

async function follow({ old, copy }: Sides, attempt: number, parts: Split): Promise<void> {
  await untilDone(old, attempt, parts, async () => {
    const moving = await listMoving(copy, parts.tenants);
    return moving.every(({ drained }) => drained === attempt) ? null : "the standby does not follow";
  });
}

// Opens the tenants again if it takes too long.
async function untilDone(old: Session, attempt: number, parts: Split, findObstacle: () => Promise<string | null>) {
  const deadline = performance.now() + drainWithinMs;
  for (;;) {
    const obstacle = await findObstacle();
    if (obstacle === null) return;
    if (performance.now() > deadline) {
      await old.rows("select admin.open_tenants($1)", [attempt]);
      throw new ConfigError(`given up, and the tenants are open again: ${obstacle}`);
    }
    await sleep(10);
  }
}

// Waits until the synchronous standby of the cell has what this has read: the wait of an earlier run may have ended
// before.
async function requireReplication(old: Session): Promise<void> {
  await old.rows("select rules.require_replication(true)");
}

// `expected`: the attempt in the old cell.
async function openAll(session: Session, expected: number | null, { tenants, log }: Pick<Split, "tenants" | "log">) {
  const attempt = await findAttempt(session, tenants);
  if (attempt !== null) {
    if (attempt !== expected) throw new ConfigError("CELL_URL is a copy of another time: nobody is opened there");
    const [done] = await session.rows<{ opened: number }>("select admin.open_tenants($1) as opened", [attempt]);
    if (done!.opened !== tenants.length) throw new ConfigError("the tenants do not live there: nobody is opened");
  }
  log("the tenants are open");
}
