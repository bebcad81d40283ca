// Finds the database of a program: the one in the settings, or the embedded server that `npm start` runs.
import { type Config, ConfigError } from "../config/config.ts";
import type { Address } from "../config/database-address.ts";
import { asServer, dataFolder, findHome } from "./data-directory.ts";
import { findPostmaster } from "./postmaster.ts";

/** Returns the address of DATABASE_URL, else of the embedded server that runs in DATA_DIR. */
export function findAddress({ address, dataDir }: Pick<Config, "address" | "dataDir">): Address {
  const found = address ?? findEmbedded(dataDir);
  if (found === null) {
    throw new ConfigError(
      `no DATABASE_URL is set and no embedded server runs in ${dataDir}: run \`npm start\` or set DATABASE_URL`,
    );
  }
  return found;
}

/** Returns null if no server in `dataDir` is ready. */
export function findEmbedded(dataDir: string): Address | null {
  const home = findHome(dataDir);
  const postmaster = home && asServer(home, () => findPostmaster(dataFolder(home)));
  return postmaster?.status === "ready" ? embeddedAddress(postmaster.socketFolder, postmaster.port) : null;
}

export function embeddedAddress(socketFolder: string, port: number): Address {
  return { host: socketFolder, port, user: "postgres", database: "coupon" };
}
