// Who is signed in. The browser has a random token in a cookie, the database its sha256.
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Database } from "../database/types.ts";
import { createBuckets } from "../http/token-bucket.ts";

export type Session = { token: string; name: string };
/** Of each member of staff, by name. */
export type StaffTokens = ReadonlyMap<string, string>;

const sessionHours = 12;
// Wrong tokens, of all clients together: nobody types ten of them in a minute. A right one is always taken.
const wrongTokens = { perSecond: 10 / 60, burst: 10 };

const digest = (text: string): Buffer => hash("sha256", text, "buffer");
const areEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** `link`: a token that is good once, for the link that a program prints. */
export function createSessions(database: Database, staff: StaffTokens, link: string | null = null) {
  const wrong = createBuckets(wrongTokens);
  let unused = link;

  async function open(name: string): Promise<Session> {
    const token = randomBytes(32).toString("base64url");
    await database.rows("select console.open_session($1, $2, $3)", [digest(token), name, sessionHours]);
    return { token, name };
  }

  /** Returns null if the token is wrong, and "later" if there were too many wrong ones. */
  async function signIn(token: string): Promise<Session | "later" | null> {
    const owner = [...staff].find(([, own]) => areEqual(own, token));
    if (owner !== undefined) return open(owner[0]);
    if (unused !== null && areEqual(unused, token)) {
      unused = null;
      return open("link");
    }
    if (wrong.left("all") < 1) return "later";
    wrong.take("all");
    return null;
  }

  async function find(token: string | undefined): Promise<Session | null> {
    if (token === undefined) return null;
    const query = "select console.find_session($1) as name";
    const [found] = await database.rows<{ name: string | null }>(query, [digest(token)]);
    return found!.name === null ? null : { token, name: found!.name };
  }

  const end = async ({ token }: Session): Promise<void> =>
    void (await database.rows("select console.end_session($1)", [digest(token)]));

  return { open, signIn, find, end };
}

export type Sessions = ReturnType<typeof createSessions>;

/** What a form sends back, so that no other site can send it. */
export const formTokenOf = ({ token }: Session): string =>
  createHmac("sha256", token).update("form").digest("base64url");

export const isFormToken = (session: Session, given: string): boolean => areEqual(formTokenOf(session), given);
