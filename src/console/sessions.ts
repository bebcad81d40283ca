// Who is signed in. The browser has a random token in a cookie, the database its sha256.
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { MasterKeys } from "../crypto/keys.ts";
import { readPortalLink } from "../crypto/portal-link.ts";
import type { Database } from "../database/types.ts";
import { createBuckets } from "../http/token-bucket.ts";

/** isCompany: it came by a link to the portal. */
export type Session = { token: string; name: string; isCompany: boolean };
/** Of each member of staff, by name. */
export type StaffTokens = ReadonlyMap<string, string>;

const sessionHours = 12;
// Wrong tokens, of all clients together: nobody types ten of them in a minute. A right one is always taken.
const wrongTokens = { perSecond: 10 / 60, burst: 10 };

export const digest = (text: string): Buffer => hash("sha256", text, "buffer");
const areEqual = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** `link`: a token that is good once, until a time in ms, for the link that a program prints. */
export type SessionParts = {
  database: Database;
  keys: MasterKeys;
  staff: StaffTokens;
  link: { token: string; until: number } | null;
};

export function createSessions({ database, keys, staff, link }: SessionParts) {
  const wrong = createBuckets(wrongTokens);
  let unused = link;

  async function open(name: string): Promise<Session> {
    const token = randomBytes(32).toString("base64url");
    await database.rows("select console.open_session($1, $2, $3)", [digest(token), name, sessionHours]);
    return { token, name, isCompany: false };
  }

  /** Returns null if the link is spent, or nobody's. */
  async function openPortal(link: string): Promise<Session | null> {
    const token = randomBytes(32).toString("base64url");
    const query = "select console.open_portal($1, $2) as name";
    const [opened] = await database.rows<{ name: string | null }>(query, [digest(token), link]);
    return opened!.name === null ? null : { token, name: opened!.name, isCompany: true };
  }

  /** Returns null if the token is wrong, and "later" if there were too many wrong ones. */
  async function signIn(token: string): Promise<Session | "later" | null> {
    const owner = [...staff].find(([, own]) => areEqual(own, token));
    if (owner !== undefined) return open(owner[0]);
    if (unused !== null && areEqual(unused.token, token) && Date.now() < unused.until) {
      unused = null;
      return open("link");
    }
    const portalLink = readPortalLink(keys, token);
    const company = portalLink === null ? null : await openPortal(portalLink);
    if (company !== null) return company;
    if (wrong.left("all") < 1) return "later";
    wrong.take("all");
    return null;
  }

  async function find(token: string | undefined): Promise<Session | null> {
    if (token === undefined) return null;
    const query = "select name, is_company from console.read_session($1)";
    const [found] = await database.rows<{ name: string | null; is_company: boolean }>(query, [digest(token)]);
    return found!.name === null ? null : { token, name: found!.name, isCompany: found!.is_company };
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
