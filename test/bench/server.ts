// The database server of a run: an embedded one with the settings of `npm start` and fsync on, or an existing one.
import path from "node:path";
import type { Address } from "../../src/common/database-address.ts";
import { findPostmaster } from "../../src/embedded/postmaster.ts";
import { addressOf, asAdmin } from "../support/database.ts";
import { readAddress } from "../support/server.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { startTemporaryServer } from "../support/temporary-server.ts";

export type Server = {
  // Names any database of the server.
  address: Address;
  // Null for an existing server: only its address is known.
  postmasterPid: number | null;
  // For logs and other files of the run; removed afterwards.
  folder: string;
  createDatabase(): Promise<{ address: Address; drop(): Promise<void> }>;
  stop(): Promise<void>;
};

const prefix = "coupon-bench-";

// As many connections as all contenders keep open together, beside `serve` and `work`.
const settings = { max_connections: "200" };

export async function startServer(databaseUrl: string | null, more: Record<string, string> = {}): Promise<Server> {
  if (databaseUrl === null) {
    const { address, folder, temporaryFolder, stop } = await startTemporaryServer(prefix, { ...settings, ...more });
    const postmasterPid = findPostmaster(path.join(folder, "data"))?.pid ?? null;
    return { address, postmasterPid, folder: temporaryFolder, createDatabase: databaseMaker(address), stop };
  }
  const address = readAddress("BENCH_DATABASE_URL", databaseUrl);
  const folder = makeTemporaryFolder(prefix);
  return {
    address,
    postmasterPid: null,
    folder,
    createDatabase: databaseMaker(address),
    stop: async () => removeFolder(folder),
  };
}

export function databaseMaker(server: Address): Server["createDatabase"] {
  let count = 0;
  return async () => {
    const name = `coupon_bench_${Date.now().toString(36)}_${(count += 1)}`;
    await asAdmin(server, (admin) => admin.rows(`create database "${name}" template template0 encoding 'UTF8'`));
    return {
      address: addressOf(server, name),
      drop: () => asAdmin(server, async (admin) => void (await admin.rows(`drop database "${name}" with (force)`))),
    };
  };
}
