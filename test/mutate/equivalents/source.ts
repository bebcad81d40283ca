// Mutants of src/ and clients/ that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inSource: Equivalent[] = [];
