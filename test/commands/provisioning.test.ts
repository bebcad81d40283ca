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

t.test("a time zone is a name that the system knows, and no offset", (t) => {
  const right = ["Europe/Berlin", "UTC", "Etc/GMT+1", "America/Port-au-Prince", "america/new_york"];
  const wrong = ["+02:00", "-02:00", "+02", "Europe/Berlin ", "Europe/Berlin;", "Mars/Base", "", "Z"];
  const parties = [...right, ...wrong].map((time_zone, index) => ({ id: `pty_${index}`, name: "M", time_zone }));
  checkList(t, { parties }, right.length, "time_zone", "must be an IANA time zone such as Europe/Berlin");
  t.end();
});
