// Mutants of db/ that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inDatabase: Equivalent[] = [];
