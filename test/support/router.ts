// The server of a router: a PostgreSQL of Debian that has PL/Proxy, in a temporary folder. The embedded server has no
// PL/Proxy.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import type { Address } from "../../src/config/database-address.ts";
import { connect } from "../../src/database/connect.ts";
import { makeHome, serverEnv } from "../../src/embedded/data-directory.ts";
import { embeddedAddress } from "../../src/embedded/find-address.ts";
import { supervisor } from "../../src/embedded/server.ts";
import { migrateRouter } from "../../src/migration/migrate-router.ts";
import { findToolFolders } from "./postgres-tools.ts";
import { makeTemporaryFolder, removeFolder } from "./temporary-folder.ts";
import { waitUntil } from "./wait-until.ts";

export const howToInstall = "no PostgreSQL here has PL/Proxy: apt-get install postgresql-15-plproxy";

/** The folder of a PostgreSQL with PL/Proxy, or undefined. */
export const findRouterBinaries = (): string | undefined =>
  findToolFolders("initdb", "postgres").find((folder) => existsSync(path.join(folder, "../lib/plproxy.so")));

export type RouterServer = { address: Address; stop(): Promise<void> };

/** A migrated router without cells, in the database of the address. */
export async function startRouterServer(binaries: string, parent?: string): Promise<RouterServer> {
  const folder = makeTemporaryFolder("coupon-router-", { parent });
  const home = makeHome(path.join(folder, "data"));
  const data = path.join(home.folder, "data");
  const as = { ...home.user, env: serverEnv, cwd: home.folder };
  const initdb = ["-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  const made = spawnSync(path.join(binaries, "initdb"), initdb, { ...as, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const settings = {
    unix_socket_directories: home.folder,
    listen_addresses: "",
    max_connections: "500",
    shared_buffers: "32MB",
    fsync: "off",
    synchronous_commit: "off",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = spawn("sh", ["-c", supervisor, "sh", path.join(binaries, "postgres"), "-D", data, ...args], {
    ...as,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = once(server, "close");
  const address = { ...embeddedAddress(home.folder, 5432), database: "router" };
  await waitUntil("the server of the router", () => isReady({ ...address, database: "postgres" }));
  await migrateRouter(address, () => {});
  return {
    address,
    async stop() {
      server.stdin!.end();
      await ended;
      removeFolder(home.folder);
      removeFolder(folder);
    },
  };
}

// Creates the database as soon as the server answers.
async function isReady(address: Address): Promise<boolean> {
  const database = connect(address, { name: "coupon test", max: 1 });
  try {
    await database.rows("create database router encoding 'UTF8' template template0");
    return true;
  } catch {
    return false;
  } finally {
    await database.end();
  }
}
