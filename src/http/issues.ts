// Builds details.issues of a 400: the field and the problem, never the value. The value could be a code in the wrong
// field, and codes must not be echoed.
import type { z } from "zod";
import type { Issue } from "./problem.ts";

export const maxIssues = 20;

export function listIssues(error: z.ZodError, input: unknown): Issue[] {
  const issues = error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ path: join([...issue.path, safeName(key)]), message: "unknown field" }));
    return [{ path: join(issue.path), message: describe(issue, valueAt(input, issue.path)) }];
  });
  return issues.slice(0, maxIssues);
}

function describe(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === "invalid_value" && value === undefined) return "is required";
  // A number that is not an integer is an invalid_type too, with the message of its field.
  if (issue.code !== "invalid_type" || "format" in issue) return issue.message;
  if (value === undefined) return "is required";
  if (issue.expected === "number" && typeof value === "number") return "must be a finite number";
  return /^[aeiou]/.test(issue.expected) ? `must be an ${issue.expected}` : `must be a ${issue.expected}`;
}

// The name of an unknown field is also text from the caller. It is shown only if it looks like a field name and not
// like a mistyped code.
export function safeName(name: string): string {
  return /^[a-z][a-z0-9_-]{0,39}$/i.test(name) && !/[a-z0-9-]{16}/i.test(name) ? name : "(unknown)";
}

function join(path: readonly PropertyKey[]): string {
  return path.map(String).join(".") || "(body)";
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[name] : undefined,
    input,
  );
}
