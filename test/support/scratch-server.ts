// A database server for a few minutes: for the tests, and for the snapshot of the tables. It trades durability for
// speed.
import { startTemporaryServer, type TemporaryServer } from "./temporary-server.ts";

export function startScratch(): Promise<TemporaryServer> {
  return startTemporaryServer("coupon-scratch-", {
    fsync: "off",
    full_page_writes: "off",
    max_connections: "300",
    max_wal_size: "4GB",
  });
}
