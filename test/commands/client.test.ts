// The signing client of the commands and tests: with an https URL, nothing of a signed request goes over the network in
// clear text.
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import t from "tap";
import { createClient } from "../../src/commands/client.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { waitFor } from "../support/wait-until.ts";

t.test("an https URL opens a TLS connection before anything is sent", async (t) => {
  const server = createServer();
  const port = await listenOnLoopback(server);
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const client = createClient({ url: `https://127.0.0.1:${port}`, accessKey: "ak_a", secret: "s".repeat(32) });
  const answer = client.get("/v1/events").then(
    () => "answered",
    () => "failed",
  );
  const [socket] = (await waitFor("a connection", once(server, "connection"))) as [Socket];
  const [first] = (await waitFor("a request", once(socket, "data"))) as [Buffer];
  // 0x16: a TLS handshake record.
  t.equal(first[0], 0x16);
  t.notMatch(first.toString("latin1"), /x-svc-|GET/);
  socket.destroy();
  t.equal(await answer, "failed");
});

t.test("a URL that is neither http nor https is refused", async (t) => {
  const client = createClient({ url: "ftp://127.0.0.1", accessKey: "ak_a", secret: "s".repeat(32) });
  await t.rejects(client.get("/v1/events"), { message: "the URL must begin with http:// or https://, not ftp:" });
});
