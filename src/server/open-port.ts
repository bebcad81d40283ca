// Opens the port of a server. If that fails, the message tells the operator which setting to change.
import type { AddressInfo, Server } from "node:net";
import { ConfigError } from "../config/config.ts";

/** `settings` name the settings that `host` and `port` come from. */
export type Place = { host: string; port: number; settings: { host: string; port: string } };

// How many connections may wait while the program is busy, for example while it starts. With node's 511, a client
// beyond that tries again after 1 s, 3 s and 7 s, so its answer comes later than promised. The kernel's own limit
// (net.core.somaxconn) is 4096 as well, unless it was changed.
const backlog = 4_096;

/** Returns the origin of the server's URLs. */
export async function openPort(server: Server, place: Place): Promise<string> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port: place.port, host: place.host, backlog }, () => {
        server.off("error", reject);
        resolve();
      });
    });
  } catch (error) {
    throw explain(error as NodeJS.ErrnoException, place);
  }
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

function explain(error: NodeJS.ErrnoException, { host, port, settings }: Place): Error {
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const reasons: Record<string, string> = {
    EADDRINUSE: `${settings.port}: ${address} is in use: stop the program that listens there, or set another port`,
    EACCES: `${settings.port}: this user may not listen on ${address}: set a port of 1024 or more`,
    EADDRNOTAVAIL: `${settings.host}: ${host} is not an address of this machine`,
    ENOTFOUND: `${settings.host}: ${host} is neither an address nor a known host name`,
  };
  const reason = reasons[error.code ?? ""];
  return reason === undefined ? error : new ConfigError(reason);
}
