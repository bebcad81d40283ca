// An embedded database server in a temporary folder, which goes when the server stops.
import { existsSync, statfsSync } from "node:fs";
import path from "node:path";
import { startEmbedded, type Embedded } from "../../src/embedded/server.ts";
import { makeTemporaryFolder, removeFolder } from "./temporary-folder.ts";

// temporaryFolder: for the caller's own files too.
export type TemporaryServer = Embedded & { temporaryFolder: string };

// With the settings of `npm start`, except for those given.
export async function startTemporaryServer(
  prefix: string,
  settings: Record<string, string> = {},
  parent?: string,
): Promise<TemporaryServer> {
  const temporaryFolder = makeTemporaryFolder(prefix, { parent });
  const server = await startEmbedded(path.join(temporaryFolder, "data"), settings);
  return {
    ...server,
    temporaryFolder,
    async stop() {
      await server.stop();
      // Root keeps the data outside the given folder, see src/embedded/data-directory.ts.
      removeFolder(server.folder);
      removeFolder(temporaryFolder);
    },
  };
}

/** Settings of a server whose data nobody keeps: they trade durability for speed. */
export const quickSettings = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: "300",
  max_wal_size: "1GB",
  // Not a quarter of the memory as in `npm start`: each `drop database` and each checkpoint looks at every buffer.
  shared_buffers: "256MB",
};

/** For a few minutes: for the tests, and for the snapshot of the tables. */
export const startScratch = (): Promise<TemporaryServer> =>
  startTemporaryServer("coupon-scratch-", quickSettings, findMemory());

// Each database of the tests has a thousand files. A disk's file system takes half as long again for all of them.
function findMemory(): string | undefined {
  const folder = "/dev/shm";
  if (!existsSync(folder)) return undefined;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > 4 * 1_024 ** 3 ? folder : undefined;
}
