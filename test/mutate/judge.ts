// Judges one mutant at a time in a copy of the checkout: loads it, then runs test files until one fails.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { openSession, sqlState } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import { copyCheckout } from "../support/copy.ts";
import { addressOf, asAdmin, dropDatabases } from "../support/database.ts";
import { applyEdit, type Mutant } from "./mutant.ts";
import { type FileRun, type Place, runFile } from "./run-file.ts";

export interface Verdict {
  /** invalid: it does not load. compiler: only tsc refuses it. */
  status: "killed" | "timeout" | "compiler" | "survived" | "invalid";
  /** The test that failed. */
  by: string;
  /** The files that passed. */
  passed: string[];
  seconds: number;
}

export interface Trial {
  test: string;
  longestMs: number;
}

export interface Bench {
  place: Place;
  judge(mutant: Mutant, trials: Trial[]): Promise<Verdict>;
  close(): void;
}

/** Several benches may share a server. `template` is a database of the unchanged code. */
export function makeBench(server: Address, template: string, name: string): Bench {
  const folder = copyCheckout();
  let count = 0;
  return {
    place: { folder, server, template, prefix: `${name}_` },
    async judge(mutant, trials) {
      const file = path.join(folder, mutant.file);
      const text = readFileSync(file, "utf8");
      const prefix = `${name}_${(count += 1)}_`;
      writeFileSync(file, applyEdit(text, mutant));
      const startedAt = performance.now();
      try {
        const verdict = await tryMutant(mutant, trials, { folder, server, template, prefix });
        return { ...verdict, seconds: Math.round((performance.now() - startedAt) / 100) / 10 };
      } finally {
        writeFileSync(file, text);
        await dropDatabases(server, prefix);
      }
    },
    close() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function tryMutant(mutant: Mutant, trials: Trial[], place: Place): Promise<Omit<Verdict, "seconds">> {
  const passed: string[] = [];
  const template = mutant.file.startsWith("db/") ? await load(mutant, place) : place.template;
  if (template === null) return { status: "invalid", by: "", passed };
  for (const { test, longestMs } of trials) {
    const run = (limit: number): Promise<FileRun> =>
      runFile({ ...place, template }, test, { longestMs: limit, env: { TAP_BAIL: "1" } });
    let { verdict, failure } = await run(longestMs);
    // The machine may have been busy.
    if (verdict === "timeout") ({ verdict, failure } = await run(3 * longestMs));
    if (verdict === "red") return { status: "killed", by: `${test}: ${failure}`, passed };
    if (verdict === "timeout") return { status: "timeout", by: test, passed };
    passed.push(test);
  }
  const isTypeScript = mutant.file.endsWith(".ts");
  if (isTypeScript && !compiles(place.folder)) return { status: "compiler", by: "tsc", passed };
  return { status: "survived", by: "", passed };
}

function compiles(folder: string): boolean {
  const tsc = path.join(folder, "node_modules/.bin/tsc");
  return spawnSync(tsc, ["--noEmit"], { cwd: folder }).status === 0;
}

/** Migrates a database with the mutant and returns its name, or null if the migrate fails. */
async function load({ file }: Mutant, { folder, server, template, prefix }: Place): Promise<string | null> {
  const name = `${prefix}template`;
  const from = file.startsWith("db/migrations/") ? "template0 encoding 'UTF8'" : `"${template}"`;
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" template ${from} strategy file_copy`));
  // The copy's own module, which reads the copy's files.
  const { migrate } = (await import(path.join(folder, "src/migration/migrate.ts"))) as Migration;
  try {
    await migrate(addressOf(server, name));
    await forgetOtherVersions(addressOf(server, name));
    return name;
  } catch (error) {
    if (sqlState((error as Error).cause ?? error) === null) throw error;
    return null;
  }
}

/** The tests must find a database that was migrated once. */
async function forgetOtherVersions(address: Address): Promise<void> {
  const session = openSession(address, { name: "coupon mutate" });
  try {
    await session.run("set session_replication_role = replica");
    await session.rows("delete from core.code_version where not is_current");
  } finally {
    await session.end();
  }
}

type Migration = typeof import("../../src/migration/migrate.ts");
