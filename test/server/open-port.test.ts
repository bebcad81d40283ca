// A port that cannot be opened is explained by the setting to change.
import { createServer, type AddressInfo } from "node:net";
import t from "tap";
import { openPort } from "../../src/server/open-port.ts";
import { lacksIpv6, listenOnLoopback } from "../support/listen.ts";

const settings = { host: "METRICS_HOST", port: "METRICS_PORT" };

t.test("the origin has the address and the port that the system chose", async (t) => {
  const server = createServer();
  t.teardown(() => server.close());
  t.match(await openPort(server, { host: "127.0.0.1", port: 0, settings }), /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
});

t.test("an IPv6 address has brackets, in the origin and in an explanation", { skip: lacksIpv6 }, async (t) => {
  const server = createServer();
  t.teardown(() => server.close());
  const origin = await openPort(server, { host: "::1", port: 0, settings });
  const { port } = server.address() as AddressInfo;
  t.equal(origin, `http://[::1]:${port}`);
  await t.rejects(openPort(createServer(), { host: "::1", port, settings }), {
    message: `METRICS_PORT: [::1]:${port} is in use: stop the program that listens there, or set another port`,
  });
});

t.test("what is wrong with host or port is said in one sentence", async (t) => {
  const other = createServer();
  const taken = await listenOnLoopback(other);
  t.teardown(() => other.close());
  const open = (host: string, port: number) => openPort(createServer(), { host, port, settings });
  await t.rejects(open("127.0.0.1", taken), {
    name: "ConfigError",
    message: `METRICS_PORT: 127.0.0.1:${taken} is in use: stop the program that listens there, or set another port`,
  });
  // An address of the documentation range, which no machine has.
  await t.rejects(open("192.0.2.1", 0), {
    name: "ConfigError",
    message: "METRICS_HOST: 192.0.2.1 is not an address of this machine",
  });
  await t.rejects(open("no.such.name.invalid", 0), { name: "ConfigError", message: /^METRICS_HOST: / });
});
