// What the faults look at and do beside signals and proxies.
import { closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../src/database/connect.ts";
import type { Stage } from "./environment.ts";

export async function untilDatabaseIsBack({ address }: Stage): Promise<void> {
  for (let isBack = false; !isBack; await sleep(20)) {
    const session = openSession(address, { name: "coupon chaos" });
    isBack = await session.rows("select 1").then(
      () => true,
      () => false,
    );
    await session.end();
  }
}

// Processes of the server, by the name of who is connected.
export async function backends({ owner }: Stage, name: string): Promise<number[]> {
  const rows = await owner.rows<{ pid: number }>(
    "select pid from pg_stat_activity where application_name like $1 and usename in ('serve', 'work') order by pid",
    [name],
  );
  return rows.map(({ pid }) => pid);
}

// What a call that is carried out cannot but change.
export async function readWritten({ owner }: Stage): Promise<string> {
  const [row] = await owner.rows<{ written: string }>(
    "select concat((select count(*) from core.request), ' ', (select max(n.seen_at) from core.nonce n)) as written",
  );
  return row!.written;
}

// Until not a page goes in any more.
export function fill(file: string): void {
  const descriptor = openSync(file, "w");
  for (const size of [2 ** 20, 2 ** 12]) while (writes(descriptor, size));
  closeSync(descriptor);
}

// Whether it went in.
function writes(descriptor: number, size: number): boolean {
  try {
    return writeSync(descriptor, Buffer.alloc(size)) === size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}
