// Finds the places of a request, or of a provisioning file, that contain a coupon code. A code may be sent in the field
// `coupon` only: other texts are stored, logged and written into statements.
import type { FindsCode } from "../crypto/find-code.ts";
import { maxIssues, safeName } from "./issues.ts";
import { invalid, type Issue } from "./problem.ts";

// isExempt: whether a text is not searched.
export type Place = { path: string; value: unknown };
type Exempt = (path: string, text: string) => boolean;

/** Throws the 400 of a request with a code in a wrong place. Its issues name the places, and never repeat the text. */
export function refuseCodes(containsCode: FindsCode, places: Iterable<Place>): void {
  const issues = listCodes(containsCode, places, isIdOfService);
  if (issues.length > 0) throw invalid(issues);
}

export function codeIssue(path: string): Issue {
  return { path, message: "must not contain a coupon code" };
}

/** Searches all texts and field names of the places, at any depth. */
export function listCodes(containsCode: FindsCode, places: Iterable<Place>, isExempt: Exempt): Issue[] {
  const issues: Issue[] = [];
  // The names and indexes that lead to a value. A path is built from them only if the value contains a code.
  const way: (string | number)[] = [];
  const pathFrom = (start: string, ...more: string[]) =>
    [start, ...way.map((step) => (typeof step === "number" ? String(step) : safeName(step))), ...more]
      .filter((step) => step !== "")
      .join(".");

  function visit(start: string, value: unknown): void {
    if (typeof value === "string") {
      if (containsCode(value) && !isExempt(pathFrom(start), value)) issues.push(codeIssue(pathFrom(start)));
    } else if (Array.isArray(value)) {
      for (const [index, element] of value.entries()) visitField(start, index, element);
    } else if (typeof value === "object" && value !== null) {
      for (const name of Object.keys(value)) {
        if (containsCode(name)) issues.push(codeIssue(pathFrom(start, "(unknown)")));
        visitField(start, name, (value as Record<string, unknown>)[name]);
      }
    }
  }

  function visitField(start: string, step: string | number, field: unknown): void {
    way.push(step);
    visit(start, field);
    way.pop();
  }

  for (const { path, value } of places) visit(path, value);
  return issues.slice(0, maxIssues);
}

// An ID that the service made looks like a code once in a million, and the caller cannot choose another one. It is only
// looked up and never stored, so it is not searched. The pattern is a UUIDv7 of the years 2004 to 2109.
const digit = "[0-9a-hjkmnp-tv-z]";
const uuid = `0[1-3]${digit}{8}[ef]${digit}{2}[89abrstv]${digit}{12}`;
const idOfService = new Map([
  ["batch", new RegExp(`^bat_${uuid}$`)],
  ["redemption", new RegExp(`^red_${uuid}$`)],
  ["event_id", new RegExp(`^evt_${uuid}$`)],
]);

/** Whether a text has the form of an ID of a batch, redemption or event that the service made. */
export const isMadeId = (text: string): boolean => [...idOfService.values()].some((pattern) => pattern.test(text));

function isIdOfService(path: string, text: string): boolean {
  return idOfService.get(path)?.test(text) ?? false;
}
