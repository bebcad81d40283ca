// Ports on the loopback address.
import { randomInt } from "node:crypto";
import { createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";

// Returns the port that the system chose.
export async function listenOnLoopback(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** The reason to skip a test that needs IPv6. */
export const lacksIpv6 =
  !Object.values(networkInterfaces()).some((found) => found?.some(({ address }) => address === "::1")) &&
  "the machine has no ::1";

const given = new Set<number>();

/** A port for a program that starts later. The system gives none of these to a socket that asks for any port. */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const port = randomInt(20_000, 32_000);
    if (given.has(port)) continue;
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    given.add(port);
    return port;
  }
  throw new Error("no free port from 20000 to 31999");
}
