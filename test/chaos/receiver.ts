// The subscriber of both tenants: takes every webhook, and remembers the ids of the events.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export type Receiver = { url: string; events: Set<string>; repeats(): number; stop(): void };

export async function startReceiver(): Promise<Receiver> {
  const events = new Set<string>();
  let repeats = 0;
  const server = createServer(async (request, response) => {
    const id = String(request.headers["webhook-id"]);
    await text(request);
    if (events.has(id)) repeats += 1;
    events.add(id);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, events, repeats: () => repeats, stop: () => void (server.close(), server.closeAllConnections()) };
}
