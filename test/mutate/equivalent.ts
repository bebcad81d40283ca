// Mutants that no test can notice, each with the reason. They do not count in the score. A mutant is named by its
// changed lines, so that edits elsewhere in the file do not matter; `npm run mutate` prints them.

import { inDatabase } from "./equivalents/database.ts";
import { inEmbedded } from "./equivalents/embedded.ts";
import type { Equivalent } from "./equivalents/equivalent.ts";
import { inOperations } from "./equivalents/operations.ts";
import { inSource } from "./equivalents/source.ts";

export type { Equivalent } from "./equivalents/equivalent.ts";

export const equivalents: Equivalent[] = [...inDatabase, ...inOperations, ...inSource, ...inEmbedded];
