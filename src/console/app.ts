// The console over HTTP: signing in and out, the search, the pages and their actions.
import { assertBodySize, getCookie, getRouterParams, H3, HTTPError, HTTPResponse, setCookie, type H3Event } from "h3";
import type { Logger } from "../common/log.ts";
import { createCodeFinder } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { sqlState } from "../database/connect.ts";
import type { Database } from "../database/types.ts";
import { readAsset } from "./assets.ts";
import { noteAuthenticated } from "../server/turns.ts";
import type { Doors } from "./doors.ts";
import { findTarget } from "./find.ts";
import { renderLayout, renderSignIn } from "./layout.ts";
import { markup } from "./markup.ts";
import type { Page, Values } from "./page.ts";
import { perform } from "./perform.ts";
import { createSessionLimits } from "./session-limits.ts";
import { isFormToken, type Session, type Sessions } from "./sessions.ts";
import { createView, headers, type Respond } from "./view.ts";

export type AppParts = {
  doors: Doors;
  /** A connection in the name of this member of staff. */
  openAs: (name: string) => Database;
  sessions: Sessions;
  keys: MasterKeys;
  log: Logger;
  /** The header in which a trusted proxy names its user; null: there is none. */
  userHeader: string | null;
};

const cookie = "coupon_console";
const mostFormBytes = 16_384;
/** Of all values of a request. */
const mostCharacters = 4_000;

export function createApp(parts: AppParts): H3 {
  const { doors, log } = parts;
  const access = createAccess(parts);
  const respond: Respond = (status, shown) => {
    const pages = shown.session === null ? [] : doors.of(shown.session).pages;
    const menu = pages.filter(({ isInMenu }) => isInMenu);
    const more = { ...headers, "content-type": "text/html; charset=utf-8" };
    return new HTTPResponse(renderLayout({ menu, ...shown }), { status, headers: more });
  };
  const app = new H3({
    silent: true,
    async onError(error, event) {
      // Characters that no text of the database can have.
      const isBadText = sqlState(error.cause)?.startsWith("22") === true;
      const status = isBadText ? 400 : error.status;
      if (status >= 500 && status !== 503) log.error({ err: error.cause ?? error }, "a page failed");
      const titles: Record<number, string> = {
        400: isBadText ? "This is not understood" : error.message,
        401: "The session has ended",
        403: "Refused",
        404: "Not found",
        429: "Too many requests. Try again in a minute",
        503: "Busy. Try again in a moment",
      };
      const title = titles[status] ?? "This did not work";
      // From a wrong address, whoever is signed in goes on.
      const session = status === 404 || status === 400 ? await access.find(event).catch(() => null) : null;
      return respond(status, { title, session, body: markup`<p><a href="/">Overview</a></p>` });
    },
  });
  app.get("/assets/:file", (event) => readAsset(getRouterParams(event)["file"]!));
  addSignIn(app, parts, access, respond);
  addPages(app, parts, access, respond);
  return app;
}

const goTo = (location: string): HTTPResponse =>
  new HTTPResponse("", { status: 303, headers: { ...headers, location } });

type Access = ReturnType<typeof createAccess>;

function createAccess({ sessions, userHeader }: AppParts) {
  function keep(event: H3Event, session: Session): Session {
    const secure = event.req.headers.get("x-forwarded-proto") === "https";
    setCookie(event, cookie, session.token, { httpOnly: true, sameSite: "strict", path: "/", secure });
    return session;
  }

  /** With a trusted header, its user counts: another one's cookie does not. */
  async function find(event: H3Event): Promise<Session | null> {
    const found = await sessions.find(getCookie(event, cookie));
    if (userHeader === null) return found;
    const user = event.req.headers.get(userHeader) ?? "";
    if (user === "") return found;
    return found?.name === user ? found : keep(event, await sessions.open(user));
  }

  /** Reads a form that a page of ours has sent; anything else is refused. */
  async function readForm(event: H3Event, session: Session | null): Promise<Values> {
    assertBodySize(event, mostFormBytes);
    const site = event.req.headers.get("sec-fetch-site");
    const text = await event.req.text().catch(() => {
      throw new HTTPError({ status: 400 });
    });
    const form = Object.fromEntries(new URLSearchParams(text));
    const isOurs = session === null || isFormToken(session, form["form_token"] ?? "");
    if (!isOurs || (site !== null && site !== "same-origin")) throw new HTTPError({ status: 403 });
    return form;
  }

  return { keep, find, readForm };
}

function addSignIn(app: H3, { sessions }: AppParts, { keep, find, readForm }: Access, respond: Respond): void {
  const ask = (status: number, link = "", message: string | null = null): HTTPResponse =>
    respond(status, { title: "Sign in", session: null, body: renderSignIn(link, message) });

  app.get("/sign-in", (event) => ask(200, event.url.searchParams.get("link") ?? ""));
  app.post("/sign-in", async (event) => {
    const session = await sessions.signIn((await readForm(event, null))["token"] ?? "");
    if (session === "later") return ask(429, "", "Too many wrong tokens. Try again in a minute.");
    if (session === null) return ask(403, "", "This token is not valid. A printed link is good once.");
    keep(event, session);
    return goTo("/");
  });
  app.post("/sign-out", async (event) => {
    const session = await find(event);
    if (session !== null) {
      await readForm(event, session);
      await sessions.end(session);
    }
    return goTo("/sign-in");
  });
}

function addPages(app: H3, parts: AppParts, { find, readForm }: Access, respond: Respond): void {
  const { doors, log } = parts;
  const show = createView({ doors, log, respond });
  const limits = createSessionLimits();
  /** Without a session, everything leads to the sign-in. */
  const signedIn = (handle: (event: H3Event, session: Session) => Promise<HTTPResponse>) => async (event: H3Event) => {
    limits.refuseAgain(getCookie(event, cookie) ?? "");
    const session = await find(event);
    if (session === null) return goTo("/sign-in");
    const socket = event.runtime?.node?.req.socket;
    if (socket !== undefined) noteAuthenticated(socket);
    return limits.run(session, () => handle(event, session));
  };

  app.post(
    "/find",
    signedIn(async (event, session) => {
      const { find: text = "" } = await readForm(event, session);
      limits.countSearch(session.name);
      const target = await findTarget({ keys: parts.keys, ...doors.of(session) }, text.slice(0, 200).trim());
      if (target !== null) return goTo(target);
      const advice = markup`<p>Nothing has this ID, name or code, or it is not yours to see. An order is found by its
lock or redemption: refused calls have no order, but are in <a href="/requests">Requests</a>.</p>`;
      return respond(404, { title: "Nothing found", session, body: advice });
    }),
  );
  /** In an address or a reason, a code would leave a trace. */
  function refuseCodes(values: Values): void {
    const texts = Object.values(values);
    if (texts.join("").length > mostCharacters) throw new HTTPError({ status: 400, message: "This is too long" });
    if (texts.some(createCodeFinder(parts.keys)))
      throw new HTTPError({ status: 400, message: "A code belongs in the search only" });
  }

  for (const path of doors.paths) {
    const pageOf = (session: Session): Page => {
      const page = doors.of(session).pages.find((each) => each.path === path);
      if (page === undefined) throw new HTTPError({ status: 404 });
      return page;
    };
    app.get(
      path,
      signedIn(async (event, session) => {
        const page = pageOf(session);
        refuseCodes(Object.fromEntries(event.url.searchParams));
        return show(event, page, session, null);
      }),
    );
    app.post(
      path,
      signedIn(async (event, session) => {
        const page = pageOf(session);
        const form = await readForm(event, session);
        refuseCodes(form);
        const action = page.actions?.find(({ name }) => name === event.url.searchParams.get("action"));
        if (action === undefined) throw new HTTPError({ status: 404 });
        const own = parts.openAs(session.name);
        const values = { ...form, ...getRouterParams(event, { decode: true }) };
        const outcome = await perform(own, action, values).finally(own.end);
        return show(event, page, session, outcome);
      }),
    );
  }
}
