// What faults inspect and do apart from signals and proxies.
import { openSession } from "../../src/database/connect.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { Environment } from "./environment.ts";

export async function untilDatabaseAnswers({ address }: Environment): Promise<void> {
  const answers = async (): Promise<boolean> => {
    const session = openSession(address, { name: "coupon chaos" });
    const isBack = await session.rows("select 1").then(
      () => true,
      () => false,
    );
    await session.end();
    return isBack;
  };
  await waitUntil("the database to answer", answers);
}

// The backend processes of our programs, by application name.
export async function listBackends({ owner }: Environment, name: string): Promise<number[]> {
  const rows = await owner.rows<{ pid: number }>(
    `select pid from pg_stat_activity
     where application_name like $1 and usename in ('serve', 'work') order by pid`,
    [name],
  );
  return rows.map(({ pid }) => pid);
}

// Changes with every call that is carried out.
export async function readWritten({ owner }: Environment): Promise<string> {
  const [row] = await owner.rows<{ written: string }>(
    "select concat((select count(*) from core.request), ' ', (select max(n.seen_at) from core.nonce n)) as written",
  );
  return row!.written;
}
