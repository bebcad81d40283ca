// Reads the raw bytes of a request body, because the signature covers bytes. The size is checked while they arrive.
import type { IncomingMessage } from "node:http";
import { invalid, lastAnswer, Problem } from "./problem.ts";

// Each piece of a chunked body costs time and memory, however small it is. A client that sends more of them loses its
// connection, so that node reads no further.
const mostPieces = 1_000;

// Refuses a body over the limit, declared or chunked, as soon as its size is known. Node discards what still arrives,
// so that the caller can read the answer instead of seeing a reset connection.
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) {
    request.resume();
    return Promise.reject(new Problem("PAYLOAD_TOO_LARGE"));
  }
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    let size = 0;
    let pieces = 0;
    let isWhole = false;
    request.on("data", (chunk: Buffer) => {
      pieces += 1;
      if (size + chunk.length > maxBytes) return reject(new Problem("PAYLOAD_TOO_LARGE"));
      if (pieces > mostPieces) return reject(new Problem("PAYLOAD_TOO_LARGE", null, { headers: lastAnswer }));
      bytes = size === 0 ? chunk : append(bytes, size, chunk, declared);
      size += chunk.length;
    });
    request.on("end", () => {
      isWhole = true;
      resolve(bytes.subarray(0, size));
    });
    // The caller is gone. This answer is only logged.
    const cut = () => {
      // equivalent mutant (condition true, literal "(body)"): a settled promise stays so, and the caller is gone
      if (!isWhole) reject(invalid([{ path: "(body)", message: "the body ended early" }]));
    };
    request.on("error", cut);
    request.on("close", cut);
  });
}

// Copies, because a small piece keeps all that was read with it in memory.
function append(bytes: Buffer, size: number, chunk: Buffer, declared: number): Buffer {
  const isLarge = size + chunk.length <= bytes.length;
  const target = isLarge ? bytes : Buffer.allocUnsafeSlow(declared || 2 * (size + chunk.length));
  if (!isLarge) bytes.copy(target, 0, 0, size);
  chunk.copy(target, size);
  return target;
}

// No two runs of blanks are adjacent in this pattern: it would try every way to divide a long run between them.
const jsonType = /^application\/json\s*(;\s*(charset\s*=\s*("utf-?8"|utf-?8)\s*(;\s*)?)?)?$/i;

// Whether the body is application/json, uncompressed, and in UTF-8 if a charset is named. Many programs write utf8.
export function isJson(request: IncomingMessage): boolean {
  const type = request.headers["content-type"] ?? "";
  const encoding = request.headers["content-encoding"] ?? "identity";
  return jsonType.test(type) && /^identity$/i.test(encoding);
}
