// What surrounds the blocks of a page.
import { markup, type Markup } from "./markup.ts";
import type { Page } from "./page.ts";
import { formTokenOf, type Session } from "./sessions.ts";

type Parts = { title: string; session: Session | null; menu: readonly Page[]; body: Markup; refreshSeconds?: number };

export const hiddenToken = (session: Session): Markup =>
  markup`<input type="hidden" name="form_token" value="${formTokenOf(session)}">`;

export function renderLayout({ title, session, menu, body, refreshSeconds }: Parts): string {
  const refresh = refreshSeconds === undefined ? null : markup` data-refresh="${refreshSeconds}"`;
  const items = menu.map((page) => {
    const current = page.title === title ? markup` aria-current="page"` : null;
    return markup`<li><a href="${page.path}"${current}>${page.title}</a></li>`;
  });
  const head =
    session === null
      ? null
      : markup`<header>
<nav aria-label="Pages"><ul>${items}</ul></nav>
<form method="post" action="/find" role="search">${hiddenToken(session)}
<label for="find">Find</label> <input id="find" name="find" autocomplete="off"
 placeholder="ID, order or code"> <button>Find</button></form>
<form method="post" action="/sign-out">${hiddenToken(session)}<button>Sign out ${session.name}</button></form>
</header>`;
  return markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title} · coupon console</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/uPlot.min.css"><link rel="stylesheet" href="/assets/style.css">
<script src="/assets/uPlot.iife.min.js" defer></script><script src="/assets/browser.js" defer></script></head>
<body>${head}<main${refresh}><h1>${title}</h1>${body}</main>
<footer>Times are UTC. A business day is one of its distributor's time zone.</footer></body></html>
`.value;
}

export const renderSignIn = (link: string, message: string | null): Markup => markup`
${message === null ? null : markup`<p role="alert">${message}</p>`}
<form method="post" action="/sign-in" class="sign-in">${
  link === ""
    ? markup`<label for="token">Token</label> <input id="token" name="token" type="password" required
 autocomplete="current-password">`
    : markup`<input type="hidden" name="token" value="${link}"> This link is good once.`
} <button>Sign in</button></form>`;
