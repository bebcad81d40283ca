// How long connections may be idle, slow or stalled, in the settings of the node server, and at a stop.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect } from "node:net";
import t, { type Test } from "tap";
import { defaultLimits, type Limits } from "../../src/config/config.ts";
import { createLog } from "../../src/common/log.ts";
import { listen, type Handler, type Listening } from "../../src/http/listener.ts";
import { closeIdleConnections, sendPlain } from "../support/client.ts";
import { leaveUnchecked } from "../support/described-answers.ts";
import { stopClock } from "../support/stop-clock.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const started = "http.server.request.start";

type Begun = { response: ServerResponse; server: Server };

// `begun` has the requests in their order, each with the server that it came to.
async function listenWith(
  t: Test,
  handler: Handler,
  limits: Partial<Limits> = {},
): Promise<{ listening: Listening; begun: Begun[] }> {
  const begun: Begun[] = [];
  const note = (message: unknown) => void begun.push(message as Begun);
  subscribe(started, note);
  t.teardown(() => unsubscribe(started, note));
  const place = { host: "127.0.0.1", port: 0, limits: { ...defaultLimits, ...limits } };
  const listening = await listen(place, createLog("silent"));
  t.teardown(() => {
    closeIdleConnections();
    return listening.stop();
  });
  leaveUnchecked(listening.url, [204]);
  listening.serve({ handler });
  return { listening, begun };
}

function answer(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204).end();
}

t.test(
  "A head has 10 s to arrive and a request 30 s; a connection is idle for 65 s and stalled for 60 s",
  async (t) => {
    const timeOutsOf = async (limits: Partial<Limits>) => {
      const { listening, begun } = await listenWith(t, answer, limits);
      const { headers } = await sendPlain(listening.url, "GET", "/");
      const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = begun.at(-1)!.server;
      return { headersTimeout, requestTimeout, keepAliveTimeout, timeout, told: headers["keep-alive"] };
    };
    t.strictSame(await timeOutsOf({}), {
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      timeout: 60_000,
      told: "timeout=65",
    });
    const others = { headersTimeoutSeconds: 2, requestTimeoutSeconds: 3, keepAliveTimeoutSeconds: 4 };
    t.strictSame(await timeOutsOf(others), {
      headersTimeout: 2_000,
      requestTimeout: 3_000,
      keepAliveTimeout: 4_000,
      timeout: 60_000,
      told: "timeout=4",
    });
  },
);

t.test("A stop cuts an answer that has not ended 5 s later", async (t) => {
  const { listening, begun } = await listenWith(t, (_, response) => {
    response.writeHead(200).write("a part");
  });
  const { hostname, port } = new URL(listening.url);
  const client = connect(Number(port), hostname);
  client.on("error", () => {});
  t.teardown(() => client.destroy());
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await waitFor("the part", once(client, "data"));
  const { server, response } = begun[0]!;
  const socket = response.socket!;
  const clock = stopClock(t, { hasTimers: true });
  const stopping = listening.stop();
  await waitUntil("the end of listening", () => !server.listening);
  clock.pass(4_999);
  const wasCut = socket.destroyed;
  clock.pass(1);
  t.strictSame([wasCut, socket.destroyed], [false, true]);
  // Ends the stop all the same if the answer was not cut.
  socket.destroy();
  await waitFor("the stop", stopping);
});
