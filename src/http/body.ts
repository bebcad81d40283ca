// Reads the raw bytes of a request body. The signature covers bytes, and h3's own readers either replace invalid UTF-8
// or check the size only after reading.
import type { IncomingMessage } from "node:http";
import { invalid, Problem } from "./problem.ts";

// Refuses a body over the limit, declared or chunked, as soon as its size is known. Node discards what still arrives,
// so that the caller can read the answer instead of seeing a reset connection.
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers["content-length"]) > maxBytes) {
    request.resume();
    return Promise.reject(new Problem("PAYLOAD_TOO_LARGE"));
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isWhole = false;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else reject(new Problem("PAYLOAD_TOO_LARGE"));
    });
    request.on("end", () => {
      isWhole = true;
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    // The caller is gone. Nobody reads this answer, but it is logged.
    const cut = () => {
      if (!isWhole) reject(invalid([{ path: "(body)", message: "the body ended early" }]));
    };
    request.on("error", cut);
    request.on("close", cut);
  });
}

// No two runs of blanks touch: a long run could be divided between them in many ways, and all would be tried.
const jsonType = /^application\/json\s*(;\s*(charset\s*=\s*("utf-8"|utf-8)\s*(;\s*)?)?)?$/i;

// Whether the body is application/json, uncompressed, and in UTF-8 if a charset is named.
export function isJson(request: IncomingMessage): boolean {
  const type = request.headers["content-type"] ?? "";
  const encoding = request.headers["content-encoding"] ?? "identity";
  return jsonType.test(type) && /^identity$/i.test(encoding);
}
