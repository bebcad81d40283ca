// The form of a provisioning file: single fields, their limits, and what appears twice. apply.test.ts tests the rest.
import t, { type Test } from "tap";
import { provisioning } from "../../src/commands/provisioning.ts";
import { listIssues } from "../../src/http/issues.ts";
import { acme } from "../support/applying.ts";
import { rightUrls, wrongUrls } from "../support/spellings.ts";
import { merchant, party, template } from "../support/tenants.ts";

function listProblems(file: unknown): string[] {
  const { error } = provisioning.safeParse(file);
  return error === undefined ? [] : listIssues(error, file).map(({ path, message }) => `${path}: ${message}`);
}

const problemsOf = (more: Record<string, unknown>): string[] => listProblems(acme(more));

type Fields = {
  // Where the value is in the file, with the file that has it there.
  path: string;
  fileWith: (value: any) => Record<string, unknown>;
  right: unknown[];
  wrong: unknown[];
  message: string;
};

function checkField(t: Test, { path, fileWith, right, wrong, message }: Fields): void {
  for (const value of right) t.strictSame(problemsOf(fileWith(value)), [], String(value));
  for (const value of wrong)
    t.strictSame(problemsOf(fileWith(value)), [`tenants.0.${path}: ${message}`], String(value));
}

const withWebhook = (webhook: object) => ({ parties: [party("pty_maker", { webhook })] });
const withDiscount = (discount: object) => ({ templates: [template("tpl_1", "pty_maker", { discount })] });
const withCredential = (credential: object) => ({ credentials: [{ party: "pty_maker", ...credential }] });

t.test("a percentage is above 0 and at most 100, with at most four decimals", async (t) => {
  const path = "templates.0.discount.percent";
  const fileWith = (percent: number) => withDiscount({ type: "percent", percent });
  const message = "must have at most 4 decimals";
  const wrong = [0.00001, 12.34567, 1e-7, 99.99999];
  checkField(t, { path, fileWith, right: [100, 12.3456, 0.0001], wrong, message });
  for (const [percent, message] of [
    [0, "Too small: expected number to be >0"],
    [-1, "Too small: expected number to be >0"],
    [100.0001, "Too big: expected number to be <=100"],
  ] as const)
    t.equal(problemsOf(fileWith(percent))[0], `tenants.0.${path}: ${message}`, String(percent));
});

t.test("an access key, a URL, a time zone and the secret of a webhook have their forms", async (t) => {
  const secretOf = (length: number) => `whsec_${Buffer.alloc(length, 251).toString("base64")}`;
  checkField(t, {
    path: "credentials.0.access_key",
    fileWith: (access_key) => withCredential({ access_key }),
    right: ["ak_a", "ak_Z9_-"],
    wrong: ["ak_", "xak_a", " ak_a", "ak_a.", "ak_a ", "AK_a"],
    message: "must be ak_ and 1 to 64 of A-Z a-z 0-9 _ -",
  });
  checkField(t, {
    path: "parties.0.webhook.url",
    fileWith: (url) => withWebhook({ url }),
    right: rightUrls,
    wrong: wrongUrls,
    message: "must be an http or https URL without a user name, and not of port 0",
  });
  checkField(t, {
    path: "parties.0.webhook.secret",
    fileWith: (secret) => withWebhook({ url: "https://x.example", secret }),
    right: [24, 25, 64].map(secretOf),
    wrong: [
      ...[23, 65, 0].map(secretOf),
      secretOf(32).slice(6),
      secretOf(32).slice(0, -1),
      `${secretOf(24)} `,
      secretOf(24).replaceAll("+", "-"),
    ],
    message: "must be whsec_ and the base64 of 24 to 64 bytes",
  });
  const offsets = ["+02:00", "-02:00", "+02", "Z", "CET", "EET", "MET", "WET", "IST", "utc"];
  checkField(t, {
    path: "parties.0.time_zone",
    fileWith: (time_zone) => ({ parties: [party("pty_maker", { time_zone })] }),
    right: ["Europe/Berlin", "UTC", "Etc/GMT+1", "America/Port-au-Prince", "america/new_york", "EST5EDT"],
    wrong: [...offsets, "Europe/Berlin ", "Europe/Berlin;", "Mars/Base", ""],
    message: "must be UTC or an IANA time zone with a region, such as Europe/Berlin",
  });
});

t.test("IDs, texts and secrets of a file have their limits", async (t) => {
  const text = (length: number) => "x".repeat(length);
  const stores = (store: object) => ({ merchants: [merchant("mch_a", "pty_maker", { stores: [store] })] });
  const templates = (more: object) => ({ templates: [template("tpl_a", "pty_maker", more)] });
  const limits: Record<string, [shortest: number, longest: number, fileWith: (length: number) => object]> = {
    "id of a template": [1, 40, (length) => templates({ id: `tpl_${text(length)}` })],
    "name of a tenant": [1, 200, (length) => ({ name: text(length) })],
    "name of a party": [1, 200, (length) => ({ parties: [party("pty_a", { name: text(length) })] })],
    "name of a merchant": [1, 200, (length) => ({ merchants: [merchant("mch_a", "pty_a", { name: text(length) })] })],
    "name of a template": [1, 200, (length) => templates({ name: text(length) })],
    sku: [1, 64, (length) => templates({ skus: [text(length)] })],
    store: [1, 64, (length) => stores({ external_id: text(length) })],
    terminal: [1, 64, (length) => stores({ external_id: "S", terminals: [text(length)] })],
    "access key": [1, 64, (length) => withCredential({ access_key: `ak_${text(length)}` })],
    secret: [32, 256, (length) => withCredential({ access_key: "ak_a", secret: text(length) })],
  };
  for (const [name, [shortest, longest, fileWith]] of Object.entries(limits)) {
    const isAccepted = (length: number) => problemsOf({ ...fileWith(length) }).length === 0;
    t.strictSame([shortest - 1, shortest, longest, longest + 1].map(isAccepted), [false, true, true, false], name);
  }
  const named = (name: string) =>
    problemsOf({ name, ...stores({ external_id: name }), ...templates({ skus: [name] }) });
  t.strictSame(named("\u0dc1\u0dca\u200d\u0dbb\u0dd3").length, 0, "a joiner is a part of a word");
  for (const name of ["a\nb", "a\u202eb", "a\u2029"])
    t.equal(named(name).length, 3, `U+${name.charCodeAt(1).toString(16)}`);
  const withUrl = (length: number) => withWebhook({ url: "https://a.example/".padEnd(length, "x") });
  t.strictSame([problemsOf(withUrl(2_048)), problemsOf(withUrl(2_049)).length], [[], 1], "URL of a webhook");
  t.equal(problemsOf(withWebhook({ url: `https://a.example/${"ü".repeat(400)}` })).length, 1, "as it is stored");
  const largest = withDiscount({ type: "fixed", amount: 1e12 });
  t.strictSame(problemsOf(largest), ["tenants.0.templates.0.discount.amount: must be below 10^12"]);
  t.strictSame(listProblems([]), ["(body): must be an object"]);
});

t.test("a credential names a party in Variant B only", async (t) => {
  const credentials = [{ access_key: "ak_acme" }];
  t.strictSame(problemsOf({ credentials }), ["tenants.0.credentials.0.party: is required in variant B"]);
  t.strictSame(problemsOf({ variant: "A" }), [
    "tenants.0.credentials.0.party: is allowed in variant B only: a credential of variant A belongs to its tenant",
  ]);
});

t.test("a merchant has stores or stores_added", async (t) => {
  const both = (stores: object) => problemsOf({ merchants: [{ ...merchant("mch_1", "pty_maker"), ...stores }] });
  const one = [{ external_id: "S1" }];
  t.strictSame(both({ stores: one }), []);
  t.strictSame(both({ stores_added: one }), []);
  t.strictSame(both({ stores: [], stores_added: one }), [
    "tenants.0.merchants.0.stores_added: cannot stand beside stores, which is the whole list",
  ]);
});

t.test("no list of a file names the same thing twice", async (t) => {
  const [tenant] = acme().tenants;
  const usual = merchant("mch_1", "pty_maker");
  const store = (terminals: string[]) => ({ external_id: "store 1", terminals });
  const withStores = (...stores: object[]) => ({ merchants: [{ ...usual, stores }] });
  const withTemplate = (more: object) => ({ templates: [template("tpl_1", "pty_maker", more)] });
  const twice = <T>(one: T): T[] => [one, one];
  const lists: [Record<string, unknown>, string][] = [
    [{ parties: twice(party("pty_maker")) }, "parties.1.id"],
    [{ merchants: twice(usual) }, "merchants.1.id"],
    [{ merchants: [{ ...usual, delegates: twice("pty_maker") }] }, "merchants.0.delegates.1"],
    [withStores(...twice(store([]))), "merchants.0.stores.1.external_id"],
    [{ merchants: [{ ...usual, stores_added: twice(store([])) }] }, "merchants.0.stores_added.1.external_id"],
    [withStores(store(twice("till 1"))), "merchants.0.stores.0.terminals.1"],
    [{ templates: twice(template("tpl_1", "pty_maker")) }, "templates.1.id"],
    [withTemplate({ skus: twice("sku 1") }), "templates.0.skus.1"],
    [withTemplate({ merchants: twice("mch_1") }), "templates.0.merchants.1"],
  ];
  for (const [more, path] of lists) t.strictSame(problemsOf(more), [`tenants.0.${path}: is a duplicate in this list`]);
  const tenants = twice({ ...tenant, credentials: [] });
  t.strictSame(listProblems({ tenants }), ["tenants.1.id: is a duplicate in this list"]);
  // Not even two tenants may have the same access key.
  t.strictSame(listProblems({ tenants: [tenant, { ...tenant, id: "ten_twin" }] }), [
    "tenants.1.credentials.0.access_key: is a duplicate in this file",
  ]);
});
