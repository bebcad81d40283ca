/**
 * The work did not happen, or its outcome is unknown. Trying again later may help: the database is unreachable, a
 * deadline passed, or too many requests already wait. `cause` holds the error behind it, if there is one.
 */
export class Unavailable extends Error {
  override name = "Unavailable";
}
