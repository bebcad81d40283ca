// A port that cannot be opened is explained by the setting to change. An open one lets many connections wait.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import t from "tap";
import { openPort } from "../../src/server/open-port.ts";
import { lacksIpv6, listenOnLoopback } from "../support/listen.ts";
import { waitAtMost, waitFor } from "../support/wait-until.ts";

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

const somaxconn = "/proc/sys/net/core/somaxconn";
const mostWaiting = existsSync(somaxconn) ? Number(readFileSync(somaxconn, "utf8")) : 0;

t.test(
  "1,000 connections wait for a program that is busy",
  {
    skip: mostWaiting < 1_000 && `this kernel lets ${mostWaiting || "an unknown number"} wait`,
  },
  async (t) => {
    const module = new URL("../../src/server/open-port.ts", import.meta.url);
    const text = `
    import { createServer } from "node:net";
    const { openPort } = await import(${JSON.stringify(module.href)});
    const place = { host: "127.0.0.1", port: 0, settings: { host: "HOST", port: "PORT" } };
    console.log(await openPort(createServer(), place));`;
    const program = spawn(process.execPath, ["--input-type=module", "--eval", text], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const sockets: Socket[] = [];
    t.teardown(() => {
      program.kill("SIGKILL");
      for (const socket of sockets) socket.destroy();
    });
    const [line] = await waitFor("the open port", once(program.stdout, "data"));
    program.kill("SIGSTOP");
    let connected = 0;
    for (let each = 0; each < 1_000; each += 1)
      sockets.push(
        connect(Number(new URL(String(line)).port), "127.0.0.1", () => (connected += 1)).on("error", () => {}),
      );
    const isDone = await waitAtMost(20_000, () => connected === 1_000);
    t.equal(connected, 1_000);
    t.ok(isDone);
  },
);
