// Benches try changed code: each has a copy of the checkout, and databases of its own on a server that all share.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import type { Address } from "../../src/common/database-address.ts";
import { openSession, sqlState } from "../../src/database/connect.ts";
import { copyCheckout } from "./copy.ts";
import { addressOf, asAdmin, dropDatabases, makeTemplate } from "./database.ts";
import type { Place } from "./run-file.ts";
import { quickSettings } from "./scratch-server.ts";
import { startTemporaryServer } from "./temporary-server.ts";

/** New texts by the path of their file in the checkout. */
export type Texts = ReadonlyMap<string, string>;

export interface Bench {
  place: Place;
  /** Acts while the files have these texts. The place is null if the database refuses them. */
  withTexts<T>(texts: Texts, act: (place: Place | null) => Promise<T>): Promise<T>;
  close(): void;
}

/** By default as many benches as the machine has cores. */
export async function withBenches(
  prefix: string,
  act: (benches: Bench[]) => Promise<void>,
  count: number = availableParallelism(),
): Promise<void> {
  const server = await startTemporaryServer(prefix, { ...quickSettings, track_functions: "all" });
  const benches: Bench[] = [];
  try {
    const template = await makeTemplate(server.address, "bench_");
    for (let n = 1; n <= count; n += 1) benches.push(makeBench(server.address, template, `bench${n}`));
    await act(benches);
  } finally {
    for (const bench of benches) bench.close();
    await server.stop();
  }
}

/** `template` is a database of the unchanged code. */
export function makeBench(server: Address, template: string, name: string): Bench {
  const folder = copyCheckout();
  let count = 0;
  const write = (texts: Texts) => {
    for (const [file, text] of texts) writeFileSync(path.join(folder, file), text);
  };
  return {
    place: { folder, server, template, prefix: `${name}_` },
    async withTexts(texts, act) {
      const before = new Map([...texts.keys()].map((file) => [file, readFileSync(path.join(folder, file), "utf8")]));
      const prefix = `${name}_${(count += 1)}_`;
      try {
        write(texts);
        return await act(await load([...texts.keys()], { folder, server, template, prefix }));
      } finally {
        write(before);
        await dropDatabases(server, prefix);
      }
    },
    close() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Lets each bench take the next item until none is left or nobody wants more. */
export async function share<T>(
  benches: Bench[],
  items: readonly T[],
  act: (bench: Bench, item: T) => Promise<void>,
  isOver = () => false,
): Promise<void> {
  const queue = [...items];
  await Promise.all(
    benches.map(async (bench) => {
      while (!isOver()) {
        const item = queue.shift();
        if (item === undefined) return;
        await act(bench, item);
      }
    }),
  );
}

/** A place whose tests find the changed code in their databases. */
async function load(files: string[], place: Place): Promise<Place | null> {
  const { folder, server, prefix } = place;
  if (!files.some((file) => file.startsWith("db/"))) return place;
  const template = `${prefix}template`;
  const isMigration = files.some((file) => file.startsWith("db/migrations/"));
  const from = isMigration ? "template0 encoding 'UTF8'" : `"${place.template}"`;
  await asAdmin(server, (admin) => admin.rows(`create database "${template}" template ${from} strategy file_copy`));
  // The copy's own module, which reads the copy's files.
  const { migrate } = (await import(path.join(folder, "src/migration/migrate.ts"))) as Migration;
  try {
    await migrate(addressOf(server, template));
    await forgetOtherVersions(addressOf(server, template));
    return { ...place, template };
  } catch (error) {
    if (sqlState((error as Error).cause ?? error) === null) throw error;
    return null;
  }
}

/** The tests must find a database that was migrated once. */
async function forgetOtherVersions(address: Address): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  try {
    await session.run("set session_replication_role = replica");
    await session.rows("delete from core.code_version where not is_current");
  } finally {
    await session.end();
  }
}

type Migration = typeof import("../../src/migration/migrate.ts");
