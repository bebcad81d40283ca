// The forms of single fields of a provisioning file. What apply does with a wrong file: apply-errors.test.ts.
import t, { type Test } from "tap";
import { provisioning } from "../../src/commands/provisioning.ts";
import { listIssues } from "../../src/http/issues.ts";
import { acme } from "../support/applying.ts";

// `more` holds a list, of which the first entries are right and the others wrong.
function checkList(t: Test, more: Record<string, unknown[]>, right: number, field: string, message: string): void {
  const [[list, entries]] = Object.entries(more) as [[string, unknown[]]];
  const { error } = provisioning.safeParse(acme(more));
  t.strictSame(
    listIssues(error!, more),
    entries.slice(right).map((_, index) => ({ path: `tenants.0.${list}.${right + index}.${field}`, message })),
  );
}

t.test("an access key is ak_ and 1 to 64 letters, digits, hyphens and underscores", (t) => {
  const right = ["ak_a", "ak_Z9_-", `ak_${"a".repeat(64)}`];
  const wrong = ["ak_", "xak_a", " ak_a", "ak_a.", "ak_a ", "AK_a", `ak_${"a".repeat(65)}`];
  const credentials = [...right, ...wrong].map((access_key) => ({ access_key, party: "pty_maker" }));
  checkList(t, { credentials }, right.length, "access_key", "must be ak_ and 1 to 64 of A-Z a-z 0-9 _ -");
  t.end();
});

t.test("a percentage has at most four decimals", (t) => {
  const right = [100, 12.3456, 0.0001];
  const wrong = [0.00001, 12.34567, 1e-7, 99.99999];
  const templates = [...right, ...wrong].map((percent, index) => ({
    ...acme().tenants[0]!.templates[0]!,
    id: `tpl_${index}`,
    discount: { type: "percent", percent },
  }));
  checkList(t, { templates }, right.length, "discount.percent", "must have at most 4 decimals");
  t.end();
});

t.test("a percentage is above 0 and at most 100", (t) => {
  for (const [percent, message] of [
    [0, "Too small: expected number to be >0"],
    [-1, "Too small: expected number to be >0"],
    [100.0001, "Too big: expected number to be <=100"],
  ] as const) {
    const template = { ...acme().tenants[0]!.templates[0]!, discount: { type: "percent", percent } };
    const file = acme({ templates: [template] });
    const { error } = provisioning.safeParse(file);
    const path = "tenants.0.templates.0.discount.percent";
    t.strictSame(listIssues(error!, file)[0], { path, message }, String(percent));
  }
  t.end();
});

t.test("the secret of a webhook is whsec_ and the base64 of 24 to 64 bytes", (t) => {
  const encode = (length: number) => `whsec_${Buffer.alloc(length, 251).toString("base64")}`;
  const right = [24, 25, 64].map(encode);
  const wrong = [23, 65, 0].map(encode);
  wrong.push(encode(32).slice(6), encode(32).slice(0, -1), `${encode(24)} `, encode(24).replaceAll("+", "-"));
  const parties = [...right, ...wrong].map((secret, index) => ({
    id: `pty_${index}`,
    name: "M",
    webhook: { url: "https://x.example", secret },
  }));
  const message = "must be whsec_ and the base64 of 24 to 64 bytes";
  checkList(t, { parties }, right.length, "webhook.secret", message);
  t.end();
});

t.test("the URL of a webhook has http or https, and neither user name nor password", (t) => {
  const right = ["https://x.example/a?b=c#d", "http://127.0.0.1:3000"];
  const wrong = ["ftp://x.example", "x.example", "", "https://u@x.example", "https://:p@x.example", "http://"];
  const parties = [...right, ...wrong].map((url, index) => ({ id: `pty_${index}`, name: "M", webhook: { url } }));
  checkList(t, { parties }, right.length, "webhook.url", "must be an http or https URL without a user name");
  t.end();
});

t.test("a time zone is a name that the system knows, and no offset", (t) => {
  const right = ["Europe/Berlin", "UTC", "Etc/GMT+1", "America/Port-au-Prince", "america/new_york", "EST5EDT"];
  const offsets = ["+02:00", "-02:00", "+02", "Z", "CET", "EET", "MET", "WET", "IST", "utc"];
  const wrong = [...offsets, "Europe/Berlin ", "Europe/Berlin;", "Mars/Base", ""];
  const parties = [...right, ...wrong].map((time_zone, index) => ({ id: `pty_${index}`, name: "M", time_zone }));
  checkList(
    t,
    { parties },
    right.length,
    "time_zone",
    "must be UTC or an IANA time zone with a region, such as Europe/Berlin",
  );
  t.end();
});

t.test("no list of a file names the same thing twice", (t) => {
  const [tenant] = acme().tenants;
  const [template] = tenant!.templates;
  const merchant = { id: "mch_1", name: "M", party: "pty_maker" };
  const store = (terminals: string[]) => ({ external_id: "store 1", terminals });
  const twice = <T>(one: T): T[] => [one, one];
  const lists: [Record<string, unknown>, string][] = [
    [{ parties: twice({ id: "pty_maker", name: "M" }) }, "parties.1.id"],
    [{ merchants: twice(merchant) }, "merchants.1.id"],
    [{ merchants: [{ ...merchant, delegates: twice("pty_maker") }] }, "merchants.0.delegates.1"],
    [{ merchants: [{ ...merchant, stores: twice(store([])) }] }, "merchants.0.stores.1.external_id"],
    [{ merchants: [{ ...merchant, stores: [store(twice("till 1"))] }] }, "merchants.0.stores.0.terminals.1"],
    [{ templates: twice(template) }, "templates.1.id"],
    [{ templates: [{ ...template, skus: twice("sku 1") }] }, "templates.0.skus.1"],
    [{ templates: [{ ...template, merchants: twice("mch_1") }] }, "templates.0.merchants.1"],
  ];
  const message = "is a duplicate in this list";
  for (const [more, path] of lists) {
    const { error } = provisioning.safeParse(acme(more));
    t.strictSame(listIssues(error!, more), [{ path: `tenants.0.${path}`, message }]);
  }
  const { error } = provisioning.safeParse({ tenants: twice({ ...tenant, credentials: [] }) });
  t.strictSame(listIssues(error!, {}), [{ path: "tenants.1.id", message }]);
  t.end();
});
