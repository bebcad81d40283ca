// Webhooks reach public addresses only, in whatever spelling the address comes.
import { Resolver } from "node:dns/promises";
import { mock } from "node:test";
import t from "tap";
import {
  createAddressRule,
  createLookup,
  findInHosts,
  joinAnswers,
  resolveHost,
  type Resolve,
} from "../../src/worker/address-rule.ts";
import { readConfig } from "../../src/config/config.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { fits } from "../support/fits.ts";
import { startReceiver, take } from "../support/receiver.ts";

const words = (text: string) => text.trim().split(/\s+/);

/** The first and the last address of each range that is not public. */
const privateRanges = [
  ["0.0.0.0", "0.255.255.255"],
  ["10.0.0.0", "10.255.255.255"],
  ["100.64.0.0", "100.127.255.255"],
  ["127.0.0.0", "127.255.255.255"],
  ["169.254.0.0", "169.254.255.255"],
  ["172.16.0.0", "172.31.255.255"],
  ["192.0.0.0", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.88.99.0", "192.88.99.255"],
  ["192.168.0.0", "192.168.255.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "255.255.255.255"],
  // All of IPv6 that is not assigned to the public: unspecified, loopback, local NAT64, discard, …
  ["::", "::ffff"],
  ["64:ff9b:1::", "1fff:ffff::"],
  ["2001::", "2001:1ff:ffff::"],
  ["2001:db8::", "2001:db8:ffff:ffff::"],
  ["2002::", "2002:ffff:ffff::"],
  ["3fff::", "3fff:fff:ffff::"],
  // Segment routing, unique local, link-local, site-local, multicast.
  ["4000::", "ffff:ffff::"],
] as const;
/** The public addresses beside these ranges. */
const publicAddresses = words(`
  1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
  169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255
  192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
  203.0.112.255 203.0.114.0 223.255.255.255 2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2003::
  3ffe:ffff:: 3fff:1000::
`);
/** IPv4 addresses inside IPv6: compatible, translated, NAT64 and Teredo. */
const embeddings = [
  "::127.0.0.1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "2001:0:53aa:64c:0:fbff:80ff:fffe",
];

t.test("private ranges are refused up to their edges, and the addresses beside them are allowed", async (t) => {
  const mayConnect = createAddressRule();
  const isIpv4 = (address: string) => address.includes(".");
  for (const address of privateRanges.flat()) {
    t.notOk(mayConnect(address), address);
    if (isIpv4(address)) for (const prefix of ["::ffff:", "64:ff9b::"]) t.notOk(mayConnect(prefix + address));
  }
  for (const address of publicAddresses) {
    t.ok(mayConnect(address), address);
    if (isIpv4(address)) for (const prefix of ["::ffff:", "64:ff9b::"]) t.ok(mayConnect(prefix + address));
  }
  for (const address of [...embeddings, "fe80::1%eth0"]) t.notOk(mayConnect(address), address);
  for (const text of ["", "name", "127.1", "1.2.3.4.5", "8.8.8.8/32", "8.8.8.8 ", "[2606:4700::1111]"])
    t.notOk(mayConnect(text), `"${text}" is not an address`);
});

t.test("WEBHOOK_ALLOW allows exactly the ranges that it lists", async (t) => {
  const allow = readConfig({
    WEBHOOK_ALLOW: ",10.1.0.0/16, FD00:1::/32 192.168.7.9/32,,::ffff:172.16.0.0/112\n,fe80::/64,",
  }).webhookAllow;
  const mayConnect = createAddressRule(allow);
  const allowed = words(`
    10.1.0.0 10.1.255.255 ::ffff:10.1.2.3 fd00:1::5 fe80::1 fe80::1%eth0 192.168.7.9 172.16.0.1 8.8.8.8
    2606:4700::1
  `);
  for (const address of allowed) t.ok(mayConnect(address), address);
  const refused = words(`
    10.0.255.255 10.2.0.0 fd00:2::5 fe80:0:0:1::1%eth0 192.168.7.8 172.17.0.0 127.0.0.1
    64:ff9b::10.1.2.3 2002:a01:203::
  `);
  for (const address of refused) t.notOk(mayConnect(address), address);
});

const webhook = (url: string) => ({ id: "evt_1", url, body: "{}", secrets: [newWebhookSecret()] });

/** Spellings of this machine that a URL parser or a resolver accepts. */
const spellings = words(`
  127.0.0.1 127.1 127.0.0.1. 127.0x1 2130706433 0X7F000001 0x7f.0.0.1 0177.1 017700000001
  %31%32%37.0.0.1 127%2E0%2E0%2E1 １２７.0.0.1 127。0．0.1 ①②⑦.⓪.⓪.① [::FFFF:7f00:1]
  [0:0:0:0:0:ffff:127.0.0.1] 0 0x0 00.0 LOCALHOST localhost. ｌｏｃａｌｈｏｓｔ
`);

t.test("no spelling of a private address makes a connection, unless WEBHOOK_ALLOW allows the address", async (t) => {
  const listener = await startReceiver(t);
  const send = createSender({ mayConnect: createAddressRule() });
  const sendAllowed = createSender({ mayConnect: createAddressRule(["127.0.0.0/8", "::1/128", "0.0.0.0/32"]) });
  for (const [index, spelling] of spellings.entries()) {
    const sent = webhook(`http://${spelling}:${listener.port}/`);
    const refusal = { httpStatus: null, error: /^refused: .* not a public address$/ };
    fits(t, await send(sent), refusal, spelling);
    t.equal(listener.connections, index);
    fits(t, await sendAllowed(sent), { httpStatus: 204, error: null }, spelling);
    t.equal(listener.connections, index + 1);
  }
});

t.test("a name that changes between lookups is checked in the lookup of its connection", async (t) => {
  const [allowed, refused] = [await startReceiver(t, take, "127.0.0.2"), await startReceiver(t)];
  let lookups = 0;
  // Alternates between the allowed address, in the role of a public one, and the refused one.
  const resolve: Resolve = async () => [(lookups += 1) % 2 === 1 ? "127.0.0.2" : "127.0.0.1"];
  const send = createSender({ mayConnect: createAddressRule(["127.0.0.2/32"]), resolve });
  for (let round = 1; round <= 3; round += 1) {
    fits(t, await send(webhook(`http://name.test:${allowed.port}/`)), { httpStatus: 204 });
    fits(t, await send(webhook(`http://name.test:${refused.port}/`)), {
      httpStatus: null,
      error: "refused: name.test has 127.0.0.1, which is not a public address",
    });
  }
  t.strictSame([lookups, allowed.connections, refused.connections], [6, 3, 0], "one lookup per connection");
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
  ] as const)
    t.strictSame(findInHosts(text, name), addresses, name);
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
