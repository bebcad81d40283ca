// The service and the API description agree on which requests are well-formed, but for the exceptions that the
// description lists under "What the schemas cannot say".
import fc from "fast-check";
import t, { type Test } from "tap";
import { newNonce } from "../../clients/typescript/src/signature.ts";
import { sign } from "../../clients/typescript/src/signature.ts";
import type { Outcome, Variant } from "../../src/gate/gate.ts";
import { routes } from "../../src/http/routes/table.ts";
import { sendBytes, sendPlain, type Client, type Reply } from "../support/client.ts";
import { findUndescribed, readDescription } from "../support/described-answers.ts";
import { bodies, secret, startStub, type Stub, emptyFeed } from "../support/stub.ts";
import { change, changes, fullBody, mayAccept, mayRefuse, sizes } from "./mutations.ts";

const runs = 150;
const variants: [Variant, "asA" | "asB"][] = [
  ["A", "asA"],
  ["B", "asB"],
];

// Refusals that only a database decides, such as an unknown ID, come after the form of the request.
const isAccepted = ({ status }: Reply): boolean => status === 200 || status === 404 || status === 422;

// A download's answer names a file, so here it does not exist.
function answer(operation: string, request_id: string): Outcome {
  if (operation === "pull_events") return emptyFeed;
  if (operation !== "get_reconciliation")
    return { status: 200, code: null, resource: null, body: '{"ok": true}', isReplay: false };
  const body = { code: "NOT_FOUND", message: "-", request_id, details: { resource: "reconciliation" } };
  return { status: 404, code: body.code, resource: "reconciliation", body: JSON.stringify(body), isReplay: false };
}

const start = (t: Test): Promise<Stub> =>
  startStub(
    t,
    { perform: async (_, call) => answer(call.operation, call.request_id) },
    { unknownCodesPerMinute: null },
  );

const schemaOf = (path: string) =>
  `/paths/${path.replaceAll("/", "~1")}/post/requestBody/content/application~1json/schema`;

t.test("Bodies: what fits the schema is accepted, and nothing else, in both variants", async (t) => {
  const stub = await start(t);
  let [accepted, refused] = [0, 0];
  for (const [variant, as] of variants) {
    const { document, validate } = readDescription(variant);
    for (const [path, body] of Object.entries(bodies)) {
      const whole = { ...body, ...fullBody(path, variant) };
      const { schema } = document["paths"][path].post.requestBody.content["application/json"];
      await fc.assert(
        fc.asyncProperty(changes, async (all) => {
          const changed = change(whole, all, schema.properties);
          const reply = await stub[as].post(path, changed);
          const wrong = validate(schemaOf(path), JSON.parse(JSON.stringify(changed)));
          if (isAccepted(reply)) accepted += 1;
          else refused += 1;
          if (isAccepted(reply) === (wrong === null)) return;
          if (wrong === null && reply.status === 400 && mayRefuse(changed)) return;
          if (wrong !== null && variant === "A" && mayAccept(changed)) return;
          throw new Error(
            `${variant} ${path} ${JSON.stringify(changed)}: ${reply.status} ${reply.text}; schema: ${wrong}`,
          );
        }),
        { numRuns: runs },
      );
    }
  }
  t.ok(accepted > 300 && refused > 300, `${accepted} accepted, ${refused} refused`);
});

t.test("Queries and path parameters: the same", async (t) => {
  const stub = await start(t);
  const word = fc.oneof(
    fc.constantFrom(
      "",
      "0",
      "1",
      "100",
      "999",
      "1000",
      "1001",
      "-1",
      "1.5",
      "x",
      "2026-02-28",
      "2026-02-30",
      "2026-1-1",
    ),
    fc.constantFrom(...sizes).map((length) => "x".repeat(length)),
    fc.nat({ max: 1_200 }).map(String),
    fc
      .date({ min: new Date("1000-01-01"), max: new Date("9999-12-31"), noInvalidDate: true })
      .map((day) => day.toISOString().slice(0, 10)),
  );
  for (const [variant, as] of variants) {
    const { document, validate } = readDescription(variant);
    for (const { path, method } of routes.filter((route) => route.method === "GET")) {
      const place = `/paths/${path.replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D")}/get/parameters`;
      const parameters = (document["paths"][path].get.parameters as any[]).flatMap((each, index) =>
        each.$ref === undefined ? [{ ...each, pointer: `${place}/${index}/schema` }] : [],
      );
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.option(word, { nil: undefined }), { minLength: 3, maxLength: 3 }),
          async (words) => {
            let target = path;
            const query = new URLSearchParams();
            const wrongs: string[] = [];
            for (const [index, { name, in: at, schema, pointer }] of parameters.entries()) {
              const given = words[index] ?? (at === "path" ? "x" : undefined);
              if (given === undefined || (at === "path" && given === "")) {
                target = target.replace(`{${name}}`, "x");
                continue;
              }
              if (at === "path") target = target.replace(`{${name}}`, given);
              else query.set(name, given);
              const wrong = validate(
                pointer,
                schema.type === "integer" && /^-?(0|[1-9]\d*)$/.test(given) ? Number(given) : given,
              );
              // A malformed date or kind in a path is a 404.
              if (wrong !== null && name !== "date" && name !== "kind") wrongs.push(wrong);
            }
            const reply = await stub[as].get(query.size > 0 ? `${target}?${query}` : target);
            if (isAccepted(reply) !== (wrongs.length === 0))
              throw new Error(
                `${variant} ${method} ${target}?${query}: ${reply.status} ${reply.text}; ${wrongs.join()}`,
              );
          },
        ),
        { numRuns: runs },
      );
    }
  }
});

t.test("Headers: the same; a malformed authentication header is a 401", async (t) => {
  const stub = await start(t);
  const { validate } = readDescription("A");
  const check = (name: string, text: string) => validate(`/components/parameters/${name}/schema`, text) === null;
  const key = fc.oneof(
    fc.constantFrom(...sizes).map((length) => "k".repeat(length)),
    fc.string({ maxLength: 140 }),
  );
  const post = (client: Client, idempotencyKey: string) =>
    client.post("/v1/coupons/cancel", bodies["/v1/coupons/cancel"], { idempotencyKey });
  await fc.assert(
    fc.asyncProperty(
      key.map((each) => each.trim()),
      async (idempotencyKey) => {
        const reply = await post(stub.asA, idempotencyKey);
        t.equal(isAccepted(reply), check("idempotency-key", idempotencyKey), JSON.stringify(idempotencyKey));
      },
    ),
    { numRuns: runs },
  );
  const wordOf = (unit: string) =>
    fc.string({ unit: fc.constantFrom(...unit), maxLength: 70 }).map((each) => each.trim());
  const drafts = fc.oneof(
    wordOf("abcXYZ019_-").map((nonce) => ({ nonce: `${nonce}${newNonce()}`.slice(0, 70) })),
    wordOf("ab09_-.+ ").map((nonce) => ({ nonce })),
    fc.constantFrom("1", "01", "+1", "1e9", "x").map((timestamp) => ({ timestamp })),
    wordOf("abcdef0189AG").map((signature) => ({ signature })),
  );
  await fc.assert(
    fc.asyncProperty(drafts, async (draft) => {
      const target = "/v1/batches/bat_1";
      const timestamp = String(Math.floor(Date.now() / 1000));
      const signed = { method: "GET", target, timestamp, nonce: newNonce(), body: Buffer.alloc(0), ...draft };
      const headers: Record<string, string> = {
        "x-svc-access-key": "ak_a",
        "x-svc-timestamp": signed.timestamp,
        "x-svc-nonce": signed.nonce,
        "x-svc-signature": "signature" in draft ? draft.signature : sign(secret, signed),
      };
      const reply = await sendPlain(stub.url, "GET", target, headers);
      const fits = Object.entries(headers).every(([name, given]) => check(name, given));
      t.equal(reply.status, fits && !("signature" in draft) ? 200 : 401, JSON.stringify(draft));
    }),
    { numRuns: runs * 2 },
  );
});

t.test("Answers to input that is no HTTP request are those of the description", async (t) => {
  const { url } = await startStub(t, {}, { headersTimeoutSeconds: 1, requestTimeoutSeconds: 1 });
  const inputs = {
    400: "nonsense\r\n\r\n",
    408: "GET /healthz HTTP/1.1\r\n",
    431: `GET /healthz HTTP/1.1\r\nx-long: ${"x".repeat(20_000)}\r\n\r\n`,
  };
  for (const [status, bytes] of Object.entries(inputs)) {
    const [head = "", text = ""] = (await sendBytes(url, bytes)).split("\r\n\r\n");
    const headers = Object.fromEntries(head.split("\r\n").map((line) => line.toLowerCase().split(": ")));
    t.ok(head.startsWith(`HTTP/1.1 ${status} `), head);
    t.equal(findUndescribed(null, { status: Number(status), headers, text, json: JSON.parse(text) }), null);
  }
});
