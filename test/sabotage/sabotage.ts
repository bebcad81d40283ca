// A sabotage removes one guard of the service, and names the test files that must notice.
import type { Edit } from "../support/copy.ts";

// behind: the next guard, which stops the fault when this one is missing. A test must notice even then, if only by the
// way in which the next guard stops the fault, such as a 500 instead of a refusal. Where only the loss of both does
// harm, both together are a separate sabotage.
// mayThrow: the tests may notice by an exception alone, for example because the service refuses what it should accept.
export type Sabotage = { name: string; behind?: string; mayThrow?: boolean; edits: Edit[]; tests: string[] };

export const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/** A guard of the tables. The attempts in psql must notice. */
export const guard = (name: string, file: string, from: string, to: string): Sabotage => ({
  name,
  edits: [edit(file, from, to)],
  tests: ["test/db/tables.test.ts"],
});
