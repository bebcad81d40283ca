// The subscriber of both tenants. It accepts every webhook and remembers the IDs of the events.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { listenOnLoopback } from "../support/listen.ts";

export type Receiver = { url: string; events: Set<string>; stop(): void };

export async function startReceiver(): Promise<Receiver> {
  const events = new Set<string>();
  const server = createServer(async (request, response) => {
    await text(request);
    events.add(String(request.headers["webhook-id"]));
    response.writeHead(204).end();
  });
  const port = await listenOnLoopback(server);
  return { url: `http://127.0.0.1:${port}/`, events, stop: () => void (server.close(), server.closeAllConnections()) };
}
