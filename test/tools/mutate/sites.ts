// Sites try changed code: each has a copy of the checkout, and databases of its own on a server that all share.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Address } from "../../../src/config/database-address.ts";
import { openSession, sqlState } from "../../../src/database/connect.ts";
import { copyCheckout } from "../../support/copy.ts";
import { addressOf, asAdmin, dropDatabases, makeTemplate } from "../../support/database.ts";
import { removeFolder } from "../../support/temporary-folder.ts";
import { quickSettings, startTemporaryServer } from "../../support/temporary-server.ts";
import { waitFor } from "../../support/wait-until.ts";

/** Where test files run. */
export interface Site {
  /** A copy of the checkout. */
  folder: string;
  server: Address;
  /** The migrated database that the tests clone. */
  template: string;
  /** Begins the name of each database of the run. */
  prefix: string;
}

/** New texts by the path of their file in the checkout. */
export type Texts = ReadonlyMap<string, string>;

export async function withSites(count: number, act: (sites: Site[]) => Promise<void>): Promise<void> {
  const server = await startTemporaryServer("coupon-mutate-", { ...quickSettings, track_functions: "all" });
  const sites: Site[] = [];
  try {
    const template = await makeTemplate(server.address, "bench_");
    for (let n = 1; n <= count; n += 1)
      sites.push({ folder: copyCheckout(), server: server.address, template, prefix: `site${n}_` });
    await act(sites);
  } finally {
    for (const { folder } of sites) removeFolder(folder);
    await server.stop();
  }
}

let changes = 0;

/** Acts while the files have these texts. The place is null if the database refuses them. */
export async function withTexts<T>(site: Site, texts: Texts, act: (place: Site | null) => Promise<T>): Promise<T> {
  const pathOf = (file: string): string => path.join(site.folder, file);
  const before = new Map([...texts.keys()].map((file) => [file, readFileSync(pathOf(file), "utf8")]));
  const write = (all: Texts) => all.forEach((text, file) => writeFileSync(pathOf(file), text));
  const place = { ...site, prefix: `${site.prefix}${(changes += 1)}_` };
  try {
    write(texts);
    return await act(await load([...texts.keys()], place));
  } finally {
    write(before);
    await dropDatabases(place.server, place.prefix);
  }
}

/** Lets each site take the next item until none is left or nobody wants more. */
export async function share<T>(
  sites: Site[],
  items: readonly T[],
  act: (site: Site, item: T) => Promise<void>,
  isOver = () => false,
): Promise<void> {
  const queue = items.values();
  const work = async (site: Site): Promise<void> => {
    for (const item of queue) {
      if (isOver()) return;
      await act(site, item);
    }
  };
  await Promise.all(sites.map(work));
}

/** A place whose tests find the changed code in their databases. */
async function load(files: string[], place: Site): Promise<Site | null> {
  const { folder, server, prefix } = place;
  const changed = files.filter((file) => file.startsWith("db/"));
  if (changed.length === 0) return place;
  const template = `${prefix}template`;
  // Only code can be loaded again into a database.
  const isCode = changed.every((file) => file.startsWith("db/code/"));
  const from = isCode ? `"${place.template}"` : "template0 encoding 'UTF8'";
  await asAdmin(server, (admin) => admin.rows(`create database "${template}" template ${from} strategy file_copy`));
  const address = addressOf(server, template);
  // The copy's own module, which reads the copy's files.
  const { migrate } = (await import(path.join(folder, "src/migration/migrate.ts"))) as Migration;
  try {
    await migrate(address);
  } catch (error) {
    if (sqlState((error as Error).cause ?? error) === null) throw error;
    return null;
  }
  // The tests must find a database that was migrated once.
  const session = openSession(address, { name: "coupon site" });
  await session.run("set session_replication_role = replica");
  await session.rows("delete from core.code_version where not is_current");
  await session.end();
  return { ...place, template };
}

type Migration = typeof import("../../../src/migration/migrate.ts");

/** Runs one test file as a process, without tap's runner, which would take a second for each. */
export async function runFile({ folder, ...run }: Site, file: string, longestMs: number, env: NodeJS.ProcessEnv) {
  const startedAt = performance.now();
  const timeout = String(Math.ceil(longestMs / 1000));
  const child = spawn(process.execPath, [file], {
    cwd: folder,
    env: { ...process.env, COUPON_TEST_RUN: JSON.stringify(run), TAP_TIMEOUT: timeout, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, with the programs that it starts.
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => (output = (output + chunk).slice(0, 1_000_000)));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    kill(child.pid!);
  }, longestMs);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const code = await waitFor("the end of a killed test", ended, { withinMs: longestMs + 60_000 });
  clearTimeout(timer);
  // A test that failed may leave programs behind.
  kill(child.pid!);
  // tap leaves the exit code at 0 if a `before` of the file fails.
  const isGreen = code === 0 && !/^not ok/m.test(output);
  const verdict = isLate ? ("timeout" as const) : isGreen ? ("green" as const) : ("red" as const);
  return { verdict, seconds: (performance.now() - startedAt) / 1000, output };
}

function kill(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended.
  }
}
