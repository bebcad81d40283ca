export interface Equivalent {
  file: string;
  /** The changed lines, without indentation, as they are and as the mutant has them. */
  before: string;
  after: string;
  reason: string;
}
