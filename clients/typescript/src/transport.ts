// One HTTP request. node:http sends the target as given; fetch would rewrite it (dots, escapes), and the signature
// covers it.
import { request as requestHttp, type Agent, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";

export type Outgoing = {
  url: string;
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Uint8Array;
  // Default: the global agent of Node.
  agent?: Agent | undefined;
  // For the whole exchange; if the body of the answer is streamed, only until it starts.
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
};
// `stream` is the body of a successful answer to `exchange` with `isStreamed`; then `text` is empty.
export type Reply = { status: number; headers: IncomingHttpHeaders; text: string; stream: IncomingMessage | null };

const senders: Record<string, typeof requestHttp> = { "http:": requestHttp, "https:": requestHttps };

/** Rejects if no whole answer arrives. */
export function exchange(outgoing: Outgoing, isStreamed = false): Promise<Reply> {
  const { url, method, target, headers, body, agent, timeoutMs, signal } = outgoing;
  const { protocol, hostname, port } = new URL(url);
  const send = senders[protocol];
  if (send === undefined)
    return Promise.reject(new Error(`the URL must begin with http:// or https://, not ${protocol}`));
  return new Promise((resolve, reject) => {
    const length = body.length > 0 || method === "POST" ? { "content-length": String(body.length) } : {};
    const request = send({
      host: hostname.replace(/^\[|\]$/g, ""),
      port,
      method,
      path: target,
      headers: { ...length, ...headers },
      ...(agent !== undefined && { agent }),
      ...(signal !== undefined && { signal }),
    });
    const giveUp = () => request.destroy(new Error(`no answer within ${timeoutMs} ms`));
    const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs);
    request.on("error", reject);
    request.on("close", () => {
      clearTimeout(timer);
      // After 101 Switching Protocols, Node ends the connection without an error. Errors come first.
      setImmediate(() => reject(new Error("the connection ended without an answer")));
    });
    request.on("response", (response) => {
      // 101 Switching Protocols without a name: no other request may use this connection.
      if (response.statusCode! < 200) return void request.destroy();
      const reply = { status: response.statusCode!, headers: response.headers, text: "", stream: null };
      if (isStreamed && reply.status === 200) {
        clearTimeout(timer);
        resolve({ ...reply, stream: response });
        return;
      }
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ ...reply, text: Buffer.concat(chunks).toString("utf8") }));
    });
    request.end(body);
  });
}
