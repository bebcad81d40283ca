// The database server of a run: an embedded one with the settings that `npm start` gives it, fsync on, or a given one.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Address } from "../../src/common/database-address.ts";
import { startEmbedded } from "../../src/embedded/server.ts";
import { findPostmaster, inspectProcess } from "../../src/embedded/postmaster.ts";
import { addressOf, asAdmin } from "../support/database.ts";
import { readAddress } from "../support/server.ts";

export type Server = {
  // With the name of any database on it.
  address: Address;
  // Null: of a given server nothing is known but its address.
  postmasterPid: number | null;
  // For logs and whatever else the run writes; gone after it.
  folder: string;
  createDatabase(): Promise<{ address: Address; drop(): Promise<void> }>;
  stop(): Promise<void>;
};

const prefix = "coupon-bench-";

export async function startServer(databaseUrl: string | null): Promise<Server> {
  removeAbandoned();
  const folder = mkdtempSync(path.join(tmpdir(), `${prefix}${process.pid}-`));
  // The server's user has to walk through it.
  chmodSync(folder, 0o711);
  const embedded = databaseUrl === null ? await startEmbedded(path.join(folder, "data")) : null;
  const address = embedded?.address ?? readAddress("BENCH_DATABASE_URL", databaseUrl!);
  let count = 0;

  async function createDatabase() {
    const name = `coupon_bench_${Date.now().toString(36)}_${(count += 1)}`;
    await asAdmin(address, (admin) => admin.rows(`create database "${name}" template template0 encoding 'UTF8'`));
    return {
      address: addressOf(address, name),
      drop: () => asAdmin(address, async (admin) => void (await admin.rows(`drop database "${name}" with (force)`))),
    };
  }

  return {
    address,
    folder,
    postmasterPid: embedded === null ? null : (findPostmaster(path.join(embedded.folder, "data"))?.pid ?? null),
    createDatabase,
    async stop() {
      await embedded?.stop();
      if (embedded !== null) rmSync(embedded.folder, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// What a killed run left; its server ended with it.
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? parseInt(name.slice(prefix.length), 10) : NaN;
    if (pid > 0 && inspectProcess(pid) === null) rmSync(path.join(tmpdir(), name), { recursive: true, force: true });
  }
}
