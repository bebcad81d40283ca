// Refuses a request whose head a proxy and this service could understand differently, as RFC 9112 requires. Node's
// parser refuses the rest: two lengths, a length beside a transfer coding, line folding, bare line ends.
import type { IncomingMessage } from "node:http";
import { invalid, lastAnswer, Problem } from "./problem.ts";

// A registered name, or an address in brackets; then perhaps a port (RFC 3986). RFC 9112 allows an empty one.
const hostPattern = /^(\[[^\][\s]*\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/;
// A list may have empty elements.
const chunkedAlone = /^[\s,]*chunked[\s,]*$/i;

export function checkHead({ headers, rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): void {
  if (httpVersionMajor !== 1) throw refuse("(request)", "must be HTTP/1.1 or HTTP/1.0", 505);
  const coding = headers["transfer-encoding"];
  if (coding !== undefined) {
    if (httpVersionMinor === 0) throw refuse("transfer-encoding", "HTTP/1.0 has no such header");
    if (!chunkedAlone.test(coding)) throw refuse("transfer-encoding", "must be chunked", 501);
  }
  if (headers.host === undefined && httpVersionMinor > 0)
    throw invalid([{ path: "host", message: "the header is required" }]);
  // Node keeps the first of several.
  for (const name of ["host", "content-type"]) if (count(rawHeaders, name) > 1) throw refuse(name, "must be sent once");
  if (!hostPattern.test(headers.host ?? ""))
    throw refuse("host", "must be a host name or address, with or without a port");
}

function refuse(path: string, message: string, status = 400): Problem {
  return new Problem("INVALID_REQUEST", { issues: [{ path, message }] }, { status, headers: lastAnswer });
}

// Names and values alternate.
function count(rawHeaders: string[], name: string): number {
  return rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === name.length && text.toLowerCase() === name,
  ).length;
}
