// Generated HTTP requests: request lines and headers as bytes, from nearly correct to random.
import fc from "fast-check";
import t from "tap";
import { sign } from "../../clients/typescript/src/signature.ts";
import { sendBytes } from "../support/client.ts";
import { findUndocumented } from "../support/documented.ts";
import { bodies, secret, startStub } from "../support/stub.ts";

type Header = [name: string, value: string];
const target = "/v1/coupons/lock";
const body = JSON.stringify(bodies[target]);

function signedHeaders(method: string, path: string): Header[] {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString("base64url");
  return [
    ["x-svc-access-key", "ak_a"],
    ["x-svc-timestamp", timestamp],
    ["x-svc-nonce", nonce],
    ["x-svc-signature", sign(secret, { method, target: path, timestamp, nonce, body: Buffer.from(body) })],
    ["content-type", "application/json"],
    ["idempotency-key", "key-1"],
  ];
}

// One character per byte. A line break in a value ends the header.
const latin = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 200,
});
const change = fc.oneof(
  fc.constant((_: string) => null),
  fc.constant((value: string) => value.toUpperCase()),
  fc.constant((value: string) => ` ${value}\t`),
  fc.constant((value: string) => value.slice(0, -1)),
  fc.constant((value: string) => value + value.at(-1)!),
  fc.constantFrom(129, 4_000, 20_000).map((length) => () => "a".repeat(length)),
  fc.nat(63).map((at) => (value: string) => value.slice(0, at) + (value[at] === "0" ? "1" : "0") + value.slice(at + 1)),
  fc
    .constantFrom("\u00e9", "\u00c3\u00a9", "\u0000", ",", "١٢٣", "0x10", "-1", "1e9", "9999999999", "0000000000")
    .map((odd) => (value: string) => odd + value.slice(odd.length)),
  visible.map((text) => () => text),
  latin.map((text) => () => text),
);
type Spoil = { at: number; change: (value: string) => string | null; isTwice: boolean; name: string | null };
const spoil: fc.Arbitrary<Spoil> = fc.record({
  at: fc.nat(5),
  change,
  isTwice: fc.boolean(),
  name: fc.oneof(
    { weight: 4, arbitrary: fc.constant(null) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "X-SVC-NONCE",
        "__proto__",
        "expect",
        "te",
        "trailer",
        "content-encoding",
        "x-http-method-override",
        "x-request-id",
        "x-forwarded-for",
      ),
    },
  ),
});
const methods = fc.constantFrom(
  "GET",
  "PUT",
  "DELETE",
  "PATCH",
  "OPTIONS",
  "TRACE",
  "HEAD",
  "CONNECT",
  "PROPFIND",
  "post",
  "FOO",
  "QUERY",
  "SEARCH",
);
const lines = fc.oneof(
  fc.tuple(methods, fc.constantFrom(target, "/v1/events", "/healthz", "/", "*", "//", "/..", "/v1/../v1/coupons/lock")),
  fc.tuple(
    fc.constantFrom("POST", "GET"),
    fc.oneof(
      visible.map((text) => `/${text}`),
      latin.map((text) => `/${text.replace(/\s/g, "").replaceAll("\u0000", "")}`),
      visible.map((text) => `${target}?${text}`),
      visible,
    ),
  ),
  fc.tuple(
    fc.constant("POST"),
    fc.constantFrom(
      "http://elsewhere.example/v1/coupons/lock",
      `${target}/`,
      `${target}#x`,
      "/v1/coupons/%6cock",
      `${target};x`,
      `${target}?`,
      "/v1/requests/%",
      "/v1/batches/%2e%2e",
    ),
  ),
);

function parse(text: string) {
  const end = text.indexOf("\r\n\r\n");
  const [line, ...rest] = text.slice(0, end).split("\r\n");
  const headers = Object.fromEntries(
    rest.map((header) => [
      header.slice(0, header.indexOf(":")).toLowerCase(),
      header.slice(header.indexOf(":") + 1).trim(),
    ]),
  );
  const content = text.slice(end + 4);
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(line!)?.[1]),
    headers,
    text: content,
    json: content === "" ? null : JSON.parse(content),
  };
}

async function send(url: string, method: string, path: string, headers: Header[], hosts: string[] = ["x"]) {
  const length: Header[] = [
    ...hosts.map((host): Header => ["host", host]),
    ["connection", "close"],
    ["content-length", String(Buffer.byteLength(body))],
  ];
  const head = [
    `${method} ${path} HTTP/1.1`,
    ...[...length, ...headers].map(([name, value]) => `${name}: ${value}`),
  ].join("\r\n");
  const startedAt = performance.now();
  const received = await sendBytes(url, Buffer.from(`${head}\r\n\r\n${body}`, "latin1"));
  return { received, afterMs: performance.now() - startedAt };
}

t.test("A signed request with any change in a header is accepted only if its signed headers are intact", async (t) => {
  const { url, calls } = await startStub(t);
  const seen: Record<string, number> = {};
  const until = performance.now() + 10_000;
  await fc.assert(
    fc.asyncProperty(spoil, async ({ at, change, isTwice, name }) => {
      if (performance.now() > until) return;
      const headers = signedHeaders("POST", target);
      const [header, value] = headers[at]!;
      const changed = change(value);
      const spoiled: Header = [name ?? header, changed ?? ""];
      if (isTwice || name !== null) headers.push(spoiled);
      else if (changed === null) headers.splice(at, 1);
      else headers[at] = spoiled;
      const before = calls.length;
      const { received, afterMs } = await send(url, "POST", target, headers);
      const answer = parse(received);
      const problem = findUndocumented(answer, afterMs);
      if (problem !== null) throw new Error(problem);
      seen[answer.status] = (seen[answer.status] ?? 0) + 1;
      // Only the first four headers belong to the signature. Spaces around a value are trimmed.
      const isIntact = at > 3 || name !== null || (!isTwice && changed?.trim() === value);
      if (!isIntact && calls.length > before) throw new Error("the call was accepted");
      if (answer.status === 200 && calls.length !== before + 1) throw new Error("200 without a call");
    }),
    { numRuns: 600 },
  );
  t.comment(JSON.stringify(seen));
  for (const status of [200, 400, 401]) t.ok(seen[status], `some answers with ${status}`);
});

t.test("Any method and target gets a documented answer, and only the signed request is accepted", async (t) => {
  const { url, calls } = await startStub(t);
  const seen: Record<string, number> = {};
  const until = performance.now() + 10_000;
  await fc.assert(
    fc.asyncProperty(
      lines,
      fc.boolean(),
      fc.constantFrom<string[]>([], ["x"], ["x", "y"], ["a b\u00e9"], ["a:99999"], ["1.2.3.999"], ["[::::]"]),
      async ([method, path], isSigned, hosts) => {
        if (performance.now() > until) return;
        // The headers are signed for the lock, so they must not work with another request line.
        const headers = isSigned ? signedHeaders("POST", target) : [];
        const { received, afterMs } = await send(url, method, path, headers, hosts);
        const answer = parse(received);
        const isBodyless = method === "HEAD" && answer.json === null;
        const problem = isBodyless ? null : findUndocumented(answer, afterMs);
        if (problem !== null) throw new Error(problem);
        seen[answer.status] = (seen[answer.status] ?? 0) + 1;
        if (calls.length > 0) throw new Error("the call was accepted");
      },
    ),
    { numRuns: 600 },
  );
  t.comment(JSON.stringify(seen));
  for (const status of [400, 401, 404, 405]) t.ok(seen[status], `some answers with ${status}`);
});
