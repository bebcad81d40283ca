// One kept-alive HTTP connection that carries one request at a time. Written by hand, because Node's own client uses
// more CPU than the service that it measures.
import { connect } from "node:net";

// isExpected: whether the body begins as expected, which is cheaper than parsing it.
export type Answer = { status: number; isExpected: boolean; text: () => string };
export type Connection = { send(bytes: Buffer, expected: string, take: (answer: Answer) => void): void; end(): void };

export function openConnection(url: string, fail: (error: Error) => void): Promise<Connection> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let chunks: Buffer[] = [];
    let expected = "";
    let take: ((answer: Answer) => void) | null = null;
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
      if (length === undefined) return fail(new Error(`an answer without content-length: ${text.slice(0, headEnd)}`));
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
