// One kept-alive HTTP connection, one request at a time. By hand, because node's own client takes more of
// the two cores than the service that is to be measured.
import { connect } from "node:net";

// Whether the body begins with what was expected, which is cheaper than reading it.
export type Taken = { status: number; isExpected: boolean; text: () => string };
export type Connection = { send(bytes: Buffer, expected: string, take: (taken: Taken) => void): void; end(): void };

export function openConnection(url: string, fail: (error: Error) => void): Promise<Connection> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let chunks: Buffer[] = [];
    let expected = "";
    let take: ((taken: Taken) => void) | null = null;
    let isEnded = false;

    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.on("error", fail);
      socket.on("close", () => isEnded || fail(new Error("the service closed a connection")));
      resolve({
        send(bytes, expectedNow, takeNow) {
          [expected, take] = [expectedNow, takeNow];
          socket.write(bytes);
        },
        end() {
          isEnded = true;
          socket.destroy();
        },
      });
    });
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const all = chunks.length === 1 ? chunk : Buffer.concat(chunks);
      const text = all.toString("latin1");
      const headEnd = text.indexOf("\r\n\r\n");
      if (headEnd === -1) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      if (length === undefined) return fail(new Error(`an answer without a length: ${text.slice(0, headEnd)}`));
      if (all.length < headEnd + 4 + Number(length)) return;
      chunks = [];
      const taker = take!;
      take = null;
      taker({
        status: Number(text.slice(9, 12)),
        isExpected: text.startsWith(expected, headEnd + 4),
        text: () => text.slice(headEnd + 4),
      });
    });
  });
}
