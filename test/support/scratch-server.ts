// A database server for a few minutes: for the tests, and for the snapshot of the tables. It lives in
// a temporary folder of its own and trades durability, which nobody needs here, for speed.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Embedded, startEmbedded } from "../../src/embedded/server.ts";
import { inspectProcess } from "../../src/embedded/postmaster.ts";

const prefix = "coupon-scratch-";

export async function startScratch(): Promise<Embedded> {
  removeAbandoned();
  const folder = mkdtempSync(path.join(tmpdir(), `${prefix}${process.pid}-`));
  // The server's user has to walk through it.
  chmodSync(folder, 0o711);
  const server = await startEmbedded(folder, {
    fsync: "off",
    full_page_writes: "off",
    max_connections: "300",
    max_wal_size: "4GB",
  });
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(server.folder, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What a killed run left: its server ended with it, its folder stayed. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const pid = parseInt(name.slice(prefix.length), 10);
    if (inspectProcess(pid) !== null) continue;
    try {
      rmSync(path.join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's: not ours to tidy.
    }
  }
}
