// Webhooks reach public addresses only, in whatever spelling the address comes. The spellings are in
// address-spellings.ts.
import { Resolver } from "node:dns/promises";
import { createServer, isIP, type AddressInfo } from "node:net";
import { mock } from "node:test";
import t, { type Test } from "tap";
import {
  createAddressRule,
  createLookup,
  findInHosts,
  joinAnswers,
  resolveHost,
  type Resolve,
} from "../../src/worker/address-rule.ts";
import { readConfig } from "../../src/common/config.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { startReceiver } from "../support/receiver.ts";
import { loopback, otherPrivate, publicAddresses } from "./address-spellings.ts";

const webhook = (url: string) => ({ id: "evt_1", url, body: "{}", secrets: [newWebhookSecret()] });
const hostOf = (url: string) => new URL(url).hostname.replace(/^\[|\]$/g, "");

// Counts connections to a port of 127.0.0.1, and of ::1 if the machine has it.
async function listen(t: Test) {
  const counted = { connections: 0, port: 0 };
  for (const host of ["127.0.0.1", "::1"]) {
    const server = createServer((socket) => {
      counted.connections += 1;
      socket
        .on("error", () => {})
        .resume()
        .end("HTTP/1.1 204 No Content\r\n\r\n");
    });
    const isListening = await new Promise<boolean>((resolve) =>
      server.on("error", () => resolve(false)).listen(counted.port, host, () => resolve(true)),
    );
    if (!isListening) continue;
    counted.port = (server.address() as AddressInfo).port;
    t.teardown(() => new Promise((resolve) => server.close(resolve)));
  }
  return counted;
}

t.test("no spelling of a private address makes a connection", async (t) => {
  const listener = await listen(t);
  const send = createSender({ mayConnect: createAddressRule() });
  const spellings = [...loopback, ...otherPrivate];
  t.ok(new Set(spellings).size >= 60, `${spellings.length} spellings`);
  for (const spelling of spellings) {
    const outcome = await send(webhook(`http://${spelling}:${listener.port}/`));
    fits(t, outcome, { httpStatus: null, error: /^refused: .* not a public address$/ }, spelling);
  }
  t.equal(listener.connections, 0);
});

t.test("all spellings of 127.0.0.1 are one address, which can be allowed", async (t) => {
  const listener = await listen(t);
  const send = createSender({ mayConnect: createAddressRule(["127.0.0.0/8", "::1/128", "0.0.0.0/32"]) });
  for (const spelling of loopback)
    fits(t, await send(webhook(`http://${spelling}:${listener.port}/`)), { httpStatus: 204, error: null }, spelling);
  t.equal(listener.connections, loopback.length, "each one reached the listener");
});

t.test(
  "no name that resolves to a private address makes a connection, even if it has public addresses too",
  async (t) => {
    const listener = await listen(t);
    const addresses = [...loopback, ...otherPrivate]
      .map((spelling) => hostOf(`http://${spelling}/`))
      .filter((host) => isIP(host) !== 0);
    t.ok(addresses.length >= 60);
    for (const address of [...addresses, "fe80::1%lo", "::1%1", "127.1", "0x7f.0.0.1", ""]) {
      for (const answer of [[address], ["8.8.8.8", address], ["2606:4700::1111", "8.8.8.8", address]]) {
        const send = createSender({ mayConnect: createAddressRule(), resolve: async () => answer });
        fits(
          t,
          await send(webhook(`http://name.test:${listener.port}/`)),
          { httpStatus: null, error: /^refused: name.test has / },
          answer.join(),
        );
      }
    }
    t.equal(listener.connections, 0);
  },
);

t.test("a name that changes between lookups is checked in the lookup of its connection", async (t) => {
  const [allowed, refused] = [await startReceiver(t, undefined, "127.0.0.2"), await listen(t)];
  let lookups = 0;
  // Alternates between the allowed address, in the role of a public one, and the refused one.
  const resolve: Resolve = async () => [(lookups += 1) % 2 === 1 ? "127.0.0.2" : "127.0.0.1"];
  const send = createSender({ mayConnect: createAddressRule(["127.0.0.2/32"]), resolve });
  for (let round = 1; round <= 20; round += 1) {
    fits(t, await send(webhook(`http://name.test:${allowed.port}/`)), { httpStatus: 204 });
    fits(t, await send(webhook(`http://name.test:${refused.port}/`)), {
      httpStatus: null,
      error: "refused: name.test has 127.0.0.1, which is not a public address",
    });
  }
  t.equal(lookups, 40, "one lookup per connection");
  t.equal(allowed.connections, 20);
  t.equal(refused.connections, 0);
});

t.test("public addresses are allowed up to the edge of the refused ranges", async (t) => {
  const mayConnect = createAddressRule();
  for (const address of publicAddresses) t.ok(mayConnect(address), address);
  for (const text of ["", "name", "127.1", "1.2.3.4.5", "8.8.8.8/32", "8.8.8.8 ", "[2606:4700::1111]"])
    t.notOk(mayConnect(text), `"${text}" is not an address`);
});

t.test("WEBHOOK_ALLOW allows exactly the ranges that it lists", async (t) => {
  const allow = readConfig({
    WEBHOOK_ALLOW: ",10.1.0.0/16, FD00:1::/32 192.168.7.9/32,,::ffff:172.16.0.0/112\n,fe80::/64,",
  }).webhookAllow;
  const mayConnect = createAddressRule(allow);
  for (const address of [
    "10.1.0.0",
    "10.1.255.255",
    "::ffff:10.1.2.3",
    "fd00:1::5",
    "fe80::1",
    "fe80::1%eth0",
    "192.168.7.9",
    "172.16.0.1",
    "8.8.8.8",
    "2606:4700::1",
  ])
    t.ok(mayConnect(address), address);
  for (const address of [
    "10.0.255.255",
    "10.2.0.0",
    "fd00:2::5",
    "fe80:0:0:1::1%eth0",
    "192.168.7.8",
    "172.17.0.0",
    "127.0.0.1",
    "64:ff9b::10.1.2.3",
    "2002:a01:203::",
  ])
    t.notOk(mayConnect(address), address);
});

t.test("the hosts file gives a name all its addresses", async (t) => {
  const text = [
    "# 10.0.0.1 db",
    "127.0.0.1 localhost",
    "  \t10.0.0.2\tDb.Internal   db  # the old one: api",
    "::1 localhost ip6-localhost",
    "10.0.0.3 api DB",
    "10.0.0.4 database db2 10.0.0.3",
    "",
  ].join("\n");
  for (const [name, addresses] of [
    ["db", ["10.0.0.2", "10.0.0.3"]],
    ["db.internal", ["10.0.0.2"]],
    ["api", ["10.0.0.3"]],
    ["localhost", ["127.0.0.1", "::1"]],
    ["10.0.0.2", []],
    ["data", []],
    ["", []],
  ] as const)
    t.strictSame(findInHosts(text, name), addresses, name);
  t.strictSame(findInHosts("", "db"), []);
});

t.test("the addresses of both DNS answers count; a failed answer matters only if nothing was found", async (t) => {
  const found = (...value: string[]): PromiseSettledResult<string[]> => ({ status: "fulfilled", value });
  const failed = (message: string): PromiseSettledResult<string[]> => ({
    status: "rejected",
    reason: new Error(message),
  });
  t.strictSame(joinAnswers([found("1.1.1.1", "2.2.2.2"), found("::2")]), ["1.1.1.1", "2.2.2.2", "::2"]);
  t.strictSame(joinAnswers([found("1.1.1.1"), failed("no IPv6")]), ["1.1.1.1"]);
  t.strictSame(joinAnswers([failed("no IPv4"), found("::2")]), ["::2"]);
  t.strictSame(joinAnswers([found(), found()]), []);
  t.throws(() => joinAnswers([failed("no IPv4"), failed("no IPv6")]), { message: "no IPv4" });
  t.throws(() => joinAnswers([found(), failed("no IPv6")]), { message: "no IPv6" });
});

t.test("localhost, with or without the dot at its end, is found without a name server", async (t) => {
  for (const name of ["localhost", "localhost."]) t.ok((await resolveHost(name)).includes("127.0.0.1"), name);
});

t.test("a name that the hosts file lacks is asked for without its last dot, for IPv4 and IPv6", async (t) => {
  const asked: string[] = [];
  // In place of a name server.
  const answer = (addresses: string[]) => async (name: string) => {
    asked.push(name);
    return addresses;
  };
  mock.method(Resolver.prototype, "resolve4", answer(["1.1.1.1"]));
  mock.method(Resolver.prototype, "resolve6", answer(["2606:4700::1"]));
  t.teardown(() => mock.restoreAll());
  t.strictSame(await resolveHost("receiver.test."), ["1.1.1.1", "2606:4700::1"]);
  t.strictSame(asked, ["receiver.test", "receiver.test"]);
});

t.test("a lookup returns the addresses of a name in the form that was asked for", async (t) => {
  const look = (addresses: string[] | Error, all: boolean) =>
    new Promise<unknown[]>((done) => {
      const resolve: Resolve = async () => {
        if (addresses instanceof Error) throw addresses;
        return addresses;
      };
      createLookup(createAddressRule(), resolve)("name.test", { all }, (...answer) => done(answer));
    });
  t.strictSame(await look(["8.8.8.8", "2606:4700::1"], false), [null, "8.8.8.8", 4]);
  t.strictSame(await look(["2606:4700::1", "8.8.8.8"], false), [null, "2606:4700::1", 6]);
  const both = [
    { address: "8.8.8.8", family: 4 },
    { address: "2606:4700::1", family: 6 },
  ];
  t.strictSame(await look(["8.8.8.8", "2606:4700::1"], true), [null, both]);
  const refused = "refused: name.test has 10.0.0.1, which is not a public address";
  for (const all of [true, false]) {
    fits(t, await look([], all), [{ message: "name.test has no address" }, []]);
    fits(t, await look(new Error("no answer"), all), [{ message: "no answer" }, []]);
    fits(t, await look(["8.8.8.8", "10.0.0.1", "10.0.0.2"], all), [{ message: refused }, []], "the first bad one");
  }
});
