// The TypeScript client with an https URL: nothing of a signed request goes over the network in clear text. That it
// reaches the service is tested in package.test.ts.
import { createServer } from "node:net";
import t from "tap";
import { createClient, UnansweredError } from "../../clients/typescript/src/index.ts";
import { listenOnLoopback } from "../support/listen.ts";

t.test("an https URL opens a TLS connection before anything is sent", async (t) => {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on("data", (chunk) => {
      received.push(chunk);
      socket.destroy();
    });
  });
  t.teardown(() => server.close());
  const url = `https://127.0.0.1:${await listenOnLoopback(server)}`;
  const client = createClient({ url, accessKey: "ak_a", secret: "s".repeat(32), attempts: 2 });
  t.teardown(() => client.close());
  await t.rejects(client.pullEvents(), UnansweredError);
  t.equal(received.length, 2);
  for (const chunk of received) {
    // 0x16: a TLS handshake record.
    t.equal(chunk[0], 0x16);
    t.notMatch(chunk.toString("latin1"), /x-svc-|GET/);
  }
});
