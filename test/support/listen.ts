// Ports on the loopback address.
import { createServer, type AddressInfo, type Server } from "node:net";

// Returns the port that the system chose.
export async function listenOnLoopback(server: Server, host = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnLoopback(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
