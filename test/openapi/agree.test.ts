// The service and the API description agree on which requests are well-formed, but for the exceptions that the
// description lists under "What the schemas cannot say".
import t, { type Test } from "tap";
import { replaceUnprintable } from "../../src/formats/field-types.ts";
import type { Outcome, Variant } from "../../src/gate/gate.ts";
import { normalizeCode } from "../../src/crypto/coupon-code.ts";
import { routes } from "../../src/http/routes/table.ts";
import { sendBytes, type Client, type Reply } from "../support/client.ts";
import { findUndescribed, pointerTo, readDescription } from "../support/described-answers.ts";
import { bodies, code, rendered, oneCode, startStub, type Stub } from "../support/stub.ts";

const variants: [Variant, "asA" | "asB"][] = [
  ["A", "asA"],
  ["B", "asB"],
];

// Refusals that only a database decides, such as an unknown ID, come after the form of the request.
const isAccepted = ({ status }: Reply): boolean => status === 200 || status === 404 || status === 422;

// A download's answer names a file, so here it does not exist.
function answer(operation: string, request_id: string): Outcome {
  const outcome = { status: 200, code: null, resource: null, body: '{"ok": true}', isReplay: false };
  if (rendered[operation] !== undefined) return rendered[operation];
  if (operation === "export_codes") return oneCode;
  if (operation !== "get_reconciliation") return outcome;
  const body = { code: "NOT_FOUND", message: "-", request_id, details: { resource: "reconciliation" } };
  return { ...outcome, status: 404, code: body.code, resource: "reconciliation", body: JSON.stringify(body) };
}

const start = (t: Test): Promise<Stub> =>
  startStub(t, { perform: async (_, call) => answer(call.operation, call.request_id) }, { wrongCodesPerMinute: null });

type Body = Record<string, unknown>;
type Fields = Record<string, { maxLength?: number; maximum?: number }>;

// Added to the bodies whose schema has the field, so that each field is changed.
const optional: Body = {
  order_amount: 20,
  currency: "EUR",
  order_id: "4711",
  store: "S1",
  terminal: "T1",
  redemption_context: { items: [{ sku: "A1", quantity: 1, amount: 5 }], basket: 7 },
  reason: "goods returned",
  distributor: "pty_1",
  request_id: "r-1",
};

/** For each operation of a variant with a body: a whole one, its schema, and a function that sends one. */
function listBodies(variant: Variant, client: Client) {
  const { document, validate } = readDescription(variant);
  return Object.entries(bodies).map(([path, body]) => {
    const { $ref } = document["paths"][path].post.requestBody.content["application/json"].schema;
    const fields = document["components"].schemas[$ref.split("/").at(-1)].properties as Fields;
    const added = Object.entries(optional).filter(([name]) => name in fields);
    // Throws unless the service and the description agree. Returns whether the service accepts the body.
    const send = async (changed: Body): Promise<boolean> => {
      const reply = await client.post(path, changed);
      const place = `${pointerTo(path)}/post/requestBody/content/application~1json/schema`;
      const wrong = validate(place, JSON.parse(JSON.stringify(changed)));
      const isExcepted = wrong === null ? reply.status === 400 && mayRefuse(changed) : mayAccept(changed, variant);
      if (isAccepted(reply) !== (wrong === null) && !isExcepted)
        throw new Error(
          `${variant} ${path} ${JSON.stringify(changed)}: ${reply.status} ${reply.text}; schema: ${wrong}`,
        );
      return isAccepted(reply);
    };
    return { whole: { ...Object.fromEntries(added), ...body } as Body, fields, send };
  });
}

const item = { sku: "A1", quantity: 1, amount: 5 };
const items = (name: string, values: unknown[]) => values.map((value) => ({ items: [{ ...item, [name]: value }] }));
const printed = ["EUR", "eur", "EURO", code, code.toLowerCase(), `${code.slice(0, 8)}-${code.slice(8)}`, `${code}0`];
const joined = ["\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0645\u06cc\u200c\u062e", "co\u00adop"];
const unprintable = ["a\u0000", "a\ud800", "line\nbreak", "\u200b", "a\u202e", "\ue000"];
/** Values of the type that a field has. */
const samples: Record<string, unknown[]> = {
  string: [...printed, ...joined, ...unprintable, "", "U".repeat(16), "0".repeat(16)],
  number: [0, -0, -1, 1.5, 0.001, 0.1 + 0.2, 9_999_999, 999_999_999_999.99, 1e12, 1e300, -0.01],
  object: [
    ...items("sku", ["x".repeat(128), "x".repeat(129), "", "\ue000", code]),
    ...items("quantity", [-1, 0, 1.5, 1e12]),
    ...items("amount", [-1, 0, 1e12]),
    ...items("name", ["x"]),
  ],
};
/** Values for any field. JSON leaves the last one out. */
const others = [null, true, 1, "1", [], {}, [code], { items: [] }, { items: {} }, undefined];
// A sign may have several units or bytes, vanish when the text is trimmed, or become two when it is normalized.
const signs = ["x", "😀", " ", "\u0958"];

t.test("Bodies: what fits the schema is accepted, and nothing else, in both variants", async (t) => {
  const stub = await start(t);
  const counts = { accepted: 0, refused: 0 };
  for (const [variant, as] of variants) {
    for (const { whole, fields, send } of listBodies(variant, stub[as])) {
      const count = async (changed: Body) => (counts[(await send(changed)) ? "accepted" : "refused"] += 1);
      await count({ ...whole, unknown: 1 });
      for (const [name, old] of Object.entries(whole)) {
        const { maxLength = 1, maximum = 1 } = fields[name]!;
        const values = [...samples[typeof old]!, ...others];
        for (const step of [-1, 0, 1])
          values.push(maximum + step, ...signs.map((sign) => sign.repeat(maxLength + step)));
        for (const value of values) await count({ ...whole, [name]: value });
      }
    }
  }
  t.ok(counts.accepted > 500 && counts.refused > 500, JSON.stringify(counts));
});

const texts = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
};
const hasLabel = ({ store, terminal }: Body, is: (label: string) => boolean): boolean =>
  [store, terminal].some((each) => typeof each === "string" && is(each));

/** The exceptions that make a request a 400 although it fits its schema. */
function mayRefuse({ coupon, ...rest }: Body): boolean {
  const holdsCode = (each: string) => each.toUpperCase().replace(/[- ]/g, "").includes(code);
  return (
    (typeof coupon === "string" && normalizeCode(coupon) === null) ||
    texts(rest).some((each) => holdsCode(each) || replaceUnprintable(each) !== each) ||
    hasLabel(rest, (each) => [...each.normalize("NFC")].length > 64)
  );
}

/** The exceptions that make a request well-formed although it does not fit its schema. */
const mayAccept = (body: Body, variant: Variant): boolean =>
  Object.entries(body).some(
    ([name, text]) => blankable.includes(name) && /^[\s\p{Default_Ignorable_Code_Point}]*$/u.test(String(text)),
  ) ||
  (variant === "A" &&
    hasLabel(body, (each) => [...each].length > 64 && [...each.trim().normalize("NFC")].length <= 64));
const blankable = ["store", "terminal", "order_id", "currency", "reason"];

t.test("Queries and path parameters: the same", async (t) => {
  const stub = await start(t);
  const words = ["0", "1", "100", "999", "1000", "1001", "-1", "1.5", "2026-02-28", "2026-02-30", "2026-1-1"];
  words.push(...[1, 64, 65, 128, 129].map((size) => "x".repeat(size)));
  for (const [variant, as] of variants) {
    const { document, validate } = readDescription(variant);
    for (const { path } of routes.filter((route) => route.method === "GET")) {
      const { parameters } = document["paths"][path].get;
      const needed = parameters.filter((one: any) => one.in === "query" && one.required);
      for (const [index, { name, in: place, schema }] of parameters.entries()) {
        for (const word of words) {
          const filled = path.replace(`{${name}}`, word).replace(/\{\w+\}/g, "x");
          const query = new URLSearchParams(needed.map((one: { name: string }) => [one.name, "x"]));
          if (place === "query") query.set(name, word);
          const reply = await stub[as].get(query.size === 0 ? filled : `${filled}?${query}`);
          const value = schema.type === "integer" && /^-?\d+$/.test(word) ? Number(word) : word;
          const wrong = validate(`${pointerTo(path)}/get/parameters/${index}/schema`, value);
          // A malformed date or kind in a path is a 404.
          const isWellFormed = wrong === null || name === "date" || name === "kind";
          t.equal(isAccepted(reply), isWellFormed, `${variant} ${path} ${name}=${word}: ${reply.text}; ${wrong}`);
        }
      }
    }
  }
});

t.test("The header idempotency-key: the same", async (t) => {
  const stub = await start(t);
  const { validate } = readDescription("A");
  for (const idempotencyKey of ["", "a b", "a\tb", code, "k".repeat(128), "k".repeat(129)]) {
    const reply = await stub.asA.post("/v1/coupons/cancel", bodies["/v1/coupons/cancel"], { idempotencyKey });
    const wrong = validate("/components/parameters/idempotency-key/schema", idempotencyKey);
    const isExcepted = wrong === null && mayRefuse({ idempotencyKey });
    t.equal(isAccepted(reply), wrong === null && !isExcepted, JSON.stringify(idempotencyKey));
  }
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
