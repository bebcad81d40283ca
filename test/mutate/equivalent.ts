// Mutants that no test can notice, each with the reason. They do not count in the score. A mutant is named by its
// changed lines, so that edits elsewhere in the file do not matter; `npm run mutate` prints them.

export interface Equivalent {
  file: string;
  /** The changed lines, without indentation, as they are and as the mutant has them. */
  before: string;
  after: string;
  reason: string;
}

export const equivalents: Equivalent[] = [];
