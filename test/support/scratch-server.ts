// A database server for a few minutes: for the tests, and for the snapshot of the tables. It trades durability for
// speed.
import { startTemporaryServer, type TemporaryServer } from "./temporary-server.ts";

/** Settings of a server whose data nobody keeps. */
export const quickSettings = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: "300",
  max_wal_size: "4GB",
  // Not a quarter of the memory as in `npm start`: each `drop database` and each checkpoint looks at every buffer.
  shared_buffers: "256MB",
};

export function startScratch(): Promise<TemporaryServer> {
  return startTemporaryServer("coupon-scratch-", quickSettings);
}
