// Where a webhook may go: to the public, and to nobody beside us, however the address is written.
import { createServer, isIP, type AddressInfo } from "node:net";
import t, { type Test } from "tap";
import { createAddressRule, type Resolve } from "../../src/worker/address-rule.ts";
import { readConfig } from "../../src/common/config.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { startReceiver } from "../support/receiver.ts";

const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
const webhook = (url: string) => ({ id: "evt_1", url, body: "{}", secrets: [secret] });
const hostOf = (url: string) => new URL(url).hostname.replace(/^\[|\]$/g, "");

// Each of these is 127.0.0.1, on this machine at least.
const loopback = [
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "127.0.0.1.",
  "127.0x1",
  "2130706433",
  "0x7f000001",
  "0X7F000001",
  "0x7f.1",
  "0x7f.0.0.1",
  "0x7f.0x0.0x0.0x1",
  "0177.0.0.1",
  "0177.1",
  "017700000001",
  "00000177.0.0.01",
  "%31%32%37.0.0.1",
  "127%2E0%2E0%2E1",
  "１２７.0.0.1",
  "127。0。0。1",
  "127．0．0．1",
  "①②⑦.⓪.⓪.①",
  "[::ffff:127.0.0.1]",
  "[::FFFF:7f00:1]",
  "[0:0:0:0:0:ffff:7f00:0001]",
  "0.0.0.0",
  "0",
  "0x0",
  "00.0",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "ｌｏｃａｌｈｏｓｔ",
];
const others = [
  // loopback and nothing
  "127.255.255.254",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[0000:0000:0000:0000:0000:0000:0000:0001]",
  "[::]",
  "0.1.2.3",
  // private
  "10.0.0.1",
  "10.1",
  "167772161",
  "0xa000001",
  "012.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.0.1",
  "3232235521",
  "0xc0.0xa8.0.1",
  "[::ffff:10.0.0.1]",
  "[::ffff:c0a8:1]",
  // link-local, the cloud's metadata
  "169.254.169.254",
  "2852039166",
  "0xa9fea9fe",
  "0251.0376.0251.0376",
  "[::ffff:a9fe:a9fe]",
  "[fd00:ec2::254]",
  // shared, multicast, reserved, broadcast, documentation, benchmarks
  "100.64.0.1",
  "100.127.255.254",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "0xffffffff",
  "192.0.0.1",
  "192.0.2.1",
  "198.51.100.1",
  "203.0.113.1",
  "198.18.0.1",
  "198.19.255.255",
  "192.88.99.1",
  // IPv6: link-local, site-local, unique local, multicast, documentation, discard, benchmarks, segment routing
  "[fe80::1]",
  "[febf::1]",
  "[fec0::1]",
  "[fc00::1]",
  "[fdff::1]",
  "[ff02::1]",
  "[ff0e::1]",
  "[2001:db8::1]",
  "[3fff::1]",
  "[100::1]",
  "[2001:2::1]",
  "[5f00::1]",
  "[4000::1]",
  // IPv4 inside IPv6: compatible, translated, NAT64, local NAT64, 6to4, Teredo (the client's address is stored inverted)
  "[::127.0.0.1]",
  "[::a9fe:a9fe]",
  "[::ffff:0:127.0.0.1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b::10.0.0.1]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::7f00:1]",
  "[64:ff9b:1:a00:0:100::]",
  "[2002:7f00:1::]",
  "[2002:c0a8:101::1]",
  "[2002:a9fe:a9fe::]",
  "[2001:0:53aa:64c:0:fbff:80ff:fffe]",
  "[2001:0:7f00:1::1]",
];
const open = [
  "8.8.8.8",
  "1.1.1.1",
  "100.63.255.255",
  "100.128.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "169.253.0.1",
  "223.255.255.255",
  "126.255.255.255",
  "128.0.0.1",
  "198.17.255.255",
  "198.20.0.0",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
  "2606:4700::1111",
  "2001:4860:4860::8888",
  "2a00:1450::1",
  "3ffe::1",
];

// Counts connections to a port of 127.0.0.1 and of ::1, where the machine has it.
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

t.test("no spelling of an address that is not public makes a connection", async (t) => {
  const listener = await listen(t);
  const send = createSender({ mayConnect: createAddressRule() });
  const spellings = [...loopback, ...others];
  t.ok(new Set(spellings).size >= 60, `${spellings.length} spellings`);
  for (const spelling of spellings) {
    const outcome = await send(webhook(`http://${spelling}:${listener.port}/`));
    t.match(outcome, { httpStatus: null, error: /^refused: .* not a public address$/ }, spelling);
  }
  t.equal(listener.connections, 0);
});

t.test("the same spellings of 127.0.0.1 are one address that can be allowed", async (t) => {
  const listener = await listen(t);
  const send = createSender({ mayConnect: createAddressRule(["127.0.0.0/8", "::1/128", "0.0.0.0/32"]) });
  for (const spelling of loopback)
    t.match(await send(webhook(`http://${spelling}:${listener.port}/`)), { httpStatus: 204, error: null }, spelling);
  t.equal(listener.connections, loopback.length, "and the listener counts each");
});

t.test("no name that resolves to such an address makes a connection, alone or among public ones", async (t) => {
  const listener = await listen(t);
  const addresses = [...loopback, ...others]
    .map((spelling) => hostOf(`http://${spelling}/`))
    .filter((host) => isIP(host) !== 0);
  t.ok(addresses.length >= 60);
  for (const address of [...addresses, "fe80::1%lo", "::1%1", "127.1", "0x7f.0.0.1", ""]) {
    for (const answer of [[address], ["8.8.8.8", address], ["2606:4700::1111", "8.8.8.8", address]]) {
      const send = createSender({ mayConnect: createAddressRule(), resolve: async () => answer });
      t.match(
        await send(webhook(`http://name.test:${listener.port}/`)),
        { httpStatus: null, error: /^refused: name.test has / },
        answer.join(),
      );
    }
  }
  t.equal(listener.connections, 0);
});

t.test("a name that changes between two looks is judged by the look that connects", async (t) => {
  const [allowed, secretPlace] = [await startReceiver(t, undefined, "127.0.0.2"), await listen(t)];
  let looks = 0;
  // By turns the address that is allowed, which stands for a public one, and the one that is not.
  const resolve: Resolve = async () => [(looks += 1) % 2 === 1 ? "127.0.0.2" : "127.0.0.1"];
  const send = createSender({ mayConnect: createAddressRule(["127.0.0.2/32"]), resolve });
  for (let round = 1; round <= 20; round += 1) {
    t.match(await send(webhook(`http://name.test:${allowed.port}/`)), { httpStatus: 204 });
    t.match(await send(webhook(`http://name.test:${secretPlace.port}/`)), {
      httpStatus: null,
      error: "refused: name.test has 127.0.0.1, which is not a public address",
    });
  }
  t.equal(looks, 40, "one look a connection");
  t.equal(allowed.connections, 20);
  t.equal(secretPlace.connections, 0);
});

t.test("public addresses are open, their neighbours in the ranges are not", async (t) => {
  const mayConnect = createAddressRule();
  for (const address of open) t.ok(mayConnect(address), address);
  for (const text of ["", "name", "127.1", "1.2.3.4.5", "8.8.8.8/32", "8.8.8.8 ", "[2606:4700::1111]"])
    t.notOk(mayConnect(text), `"${text}" is no address`);
});

t.test("WEBHOOK_ALLOW opens just what it lists", async (t) => {
  const allow = readConfig({
    WEBHOOK_ALLOW: "10.1.0.0/16, fd00:1::/32 192.168.7.9/32,::ffff:172.16.0.0/112",
  }).webhookAllow;
  const mayConnect = createAddressRule(allow);
  for (const address of [
    "10.1.0.0",
    "10.1.255.255",
    "::ffff:10.1.2.3",
    "fd00:1::5",
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
    "192.168.7.8",
    "172.17.0.0",
    "127.0.0.1",
    "64:ff9b::10.1.2.3",
    "2002:a01:203::",
  ])
    t.notOk(mayConnect(address), address);
});
