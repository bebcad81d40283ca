// Generated HTTP requests: request lines and headers as bytes, from nearly correct to random.
import fc from "fast-check";
import t from "tap";
import { newNonce, signedHeaders } from "../../clients/typescript/src/signature.ts";
import { sendBytes } from "../support/client.ts";
import { findUndescribed } from "../support/described-answers.ts";
import { bodies, secret, startStub } from "../support/stub.ts";

type Header = [name: string, value: string];
const target = "/v1/coupons/lock";
const body = JSON.stringify(bodies[target]);

// The first four belong to the signature.
function makeHeaders(): Header[] {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = { method: "POST", target, timestamp, nonce: newNonce(), body: Buffer.from(body) };
  const headers = Object.entries(signedHeaders({ accessKey: "ak_a", secret }, signed));
  return [...headers, ["content-type", "application/json"], ["idempotency-key", "key-1"]];
}

// One character per byte. A line break in a value ends the header.
const latin = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("latin1"));
const visible = fc
  .array(fc.integer({ min: 0x21, max: 0x7e }), { maxLength: 200 })
  .map((codes) => String.fromCharCode(...codes));
const odd = ["\u00e9", "\u00c3\u00a9", "\u0000", ",", "١٢٣", "0x10", "-1", "1e9", "9999999999", "0000000000"];
const change = fc.oneof(
  fc.constantFrom<(value: string) => string | null>(
    () => null,
    (value) => value.toUpperCase(),
    (value) => ` ${value}\t`,
    (value) => value.slice(0, -1),
    (value) => value + value.at(-1)!,
  ),
  fc.constantFrom(129, 4_000, 20_000).map((length) => () => "a".repeat(length)),
  fc.nat(63).map((at) => (value: string) => value.slice(0, at) + (value[at] === "0" ? "1" : "0") + value.slice(at + 1)),
  fc.constantFrom(...odd).map((start) => (value: string) => start + value.slice(start.length)),
  fc.oneof(visible, latin).map((text) => () => text),
);
const otherName = fc.constantFrom("X-SVC-NONCE", "__proto__", "expect", "te", "content-encoding", "x-request-id");
const methods = "GET PUT DELETE PATCH OPTIONS TRACE HEAD CONNECT PROPFIND post FOO QUERY SEARCH".split(" ");
const lines = fc.oneof(
  fc.tuple(
    fc.constantFrom(...methods),
    fc.constantFrom(target, "/v1/events", "/healthz", "/", "*", "//", "/..", "/v1/../v1/coupons/lock"),
  ),
  fc.tuple(
    fc.constantFrom("POST", "GET"),
    fc.oneof(
      visible,
      visible.map((text) => `/${text}`),
      visible.map((text) => `${target}?${text}`),
      latin.map((text) => `/${text.replace(/\s/g, "").replaceAll("\u0000", "")}`),
    ),
  ),
  fc.tuple(
    fc.constant("POST"),
    fc.constantFrom(
      "http://elsewhere.example/v1/coupons/lock",
      `${target}/`,
      `${target}#x`,
      `${target};x`,
      `${target}?`,
      "/v1/coupons/%6cock",
      "/v1/requests/%",
      "/v1/batches/%2e%2e",
    ),
  ),
);

function parse(text: string) {
  const end = text.indexOf("\r\n\r\n");
  const [line, ...rest] = text.slice(0, end).split("\r\n");
  const headers = rest.map((header) => header.split(/:\s*/, 2) as [string, string]);
  const content = text.slice(end + 4);
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(line!)?.[1]),
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    text: content,
    json: content === "" ? null : JSON.parse(content),
  };
}

// Sends a request, and throws if the API description lacks its answer.
async function send(url: string, line: string, headers: Header[], hosts = ["x"]) {
  const all = [
    ...hosts.map((host): Header => ["host", host]),
    ["connection", "close"],
    ["content-length", String(Buffer.byteLength(body))],
    ...headers,
  ];
  const head = [`${line} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`)].join("\r\n");
  const answer = parse(await sendBytes(url, Buffer.from(`${head}\r\n\r\n${body}`, "latin1")));
  const [method = "", target = ""] = line.split(" ");
  // The stub makes up a 200, and some of them are no request for the server.
  if (answer.status === 200) return 200;
  const wrong = findUndescribed({ method, target }, answer) && findUndescribed(null, answer);
  if (wrong !== null || answer.status >= 500) throw new Error(wrong ?? answer.text);
  return answer.status;
}

t.test("A signed request with any change in a header is accepted only if its signed headers are intact", async (t) => {
  const { url, calls } = await startStub(t);
  const seen = new Set<number>();
  const name = fc.option(otherName, { freq: 4 });
  await fc.assert(
    fc.asyncProperty(fc.nat(5), change, fc.boolean(), name, async (at, change, isTwice, name) => {
      const headers = makeHeaders();
      const [header, value] = headers[at]!;
      const changed = change(value);
      const isAdded = isTwice || name !== null;
      if (isAdded) headers.push([name ?? header, changed ?? ""]);
      else headers.splice(at, 1, ...(changed === null ? [] : [[header, changed] satisfies Header]));
      const before = calls.length;
      const status = await send(url, `POST ${target}`, headers);
      seen.add(status);
      // Spaces around a value are trimmed.
      const isIntact = at > 3 || name !== null || (!isTwice && changed?.trim() === value);
      if (!isIntact && calls.length > before) throw new Error("the call was accepted");
      if (status === 200 && calls.length !== before + 1) throw new Error("200 without a call");
    }),
    { numRuns: 150, timeout: 20_000, interruptAfterTimeLimit: 10_000 },
  );
  for (const status of [200, 400, 401]) t.ok(seen.has(status), `some answers with ${status}`);
});

t.test("Any method and target gets a documented answer, and only the signed request is accepted", async (t) => {
  const { url, calls } = await startStub(t);
  const seen = new Set<number>();
  const hosts = fc.constantFrom<string[]>([], ["x"], ["x", "y"], ["a b\u00e9"], ["a:99999"], ["1.2.3.999"], ["[::::]"]);
  await fc.assert(
    fc.asyncProperty(lines, fc.boolean(), hosts, async (line, isSigned, hosts) => {
      // The headers are signed for the lock, so they must not work with another request line.
      seen.add(await send(url, line.join(" "), isSigned ? makeHeaders() : [], hosts));
      if (calls.length > 0) throw new Error("the call was accepted");
    }),
    { numRuns: 150, timeout: 20_000, interruptAfterTimeLimit: 10_000 },
  );
  for (const status of [400, 401, 404, 405]) t.ok(seen.has(status), `some answers with ${status}`);
});
