// The forms of a page: its filters, what is below a block, and the actions of staff.
import { hiddenToken } from "./layout.ts";
import { markup, type Markup } from "./markup.ts";
import type { Filter, Outcome, Page, Values } from "./page.ts";
import type { Row } from "./query.ts";
import type { Session } from "./sessions.ts";

export function renderFilters(filters: readonly Filter[], values: Values): Markup | null {
  if (filters.length === 0) return null;
  const fields = filters.map(({ name, label, choices }) => {
    const value = values[name] ?? "";
    const options = choices?.map((choice) =>
      choice === value ? markup`<option selected>${choice}</option>` : markup`<option>${choice}</option>`,
    );
    const input =
      options === undefined
        ? markup`<input id="${name}" name="${name}" value="${value}">`
        : markup`<select id="${name}" name="${name}"><option value="">all</option>${options}</select>`;
    return markup`<span><label for="${name}">${label}</label> ${input}</span>`;
  });
  return markup`<form class="filters">${fields}<button>Filter</button></form>`;
}

type Tools = { search: URLSearchParams; index: number; next: string | null; psql: string | null };

/** The next page, the CSV and, for staff, the same question for psql. */
export function renderTools({ search, index, next, psql }: Tools): Markup {
  const hrefWith = (more: Record<string, string>): string =>
    `?${new URLSearchParams({ ...Object.fromEntries(search), ...more })}`;
  const more =
    next === null ? null : markup`<a href="${hrefWith({ block: String(index), cursor: next })}">Next page</a>`;
  const query =
    psql === null
      ? null
      : markup`<details><summary>This query in psql</summary><pre tabindex="0">${psql}</pre></details>`;
  return markup`<div class="tools">${more}<a href="${hrefWith({ csv: String(index) })}">CSV</a>
${query}</div>`;
}

export function renderActions({ actions = [] }: Page, session: Session, subject: Row | undefined): Markup | null {
  if (actions.length === 0) return null;
  const tenant = subject?.["tenant"]?.text ?? "";
  const forms = actions.map(({ name, label, fields = {}, note = "", isWithoutReason = false }) => {
    const inputs = Object.entries(
      isWithoutReason ? fields : { ...fields, reason: `Reason to ${label.toLowerCase()}` },
    ).map(
      ([field, text]) =>
        markup`<span><label for="${name}-${field}">${text}</label>
<input id="${name}-${field}" name="${field}" required maxlength="1000"></span>`,
    );
    return markup`<form method="post" action="?action=${name}" class="action">${hiddenToken(session)}
<input type="hidden" name="tenant" value="${tenant}">${inputs}<button>${label}</button>
<span class="none">${note}</span></form>`;
  });
  return markup`<section><h2>Actions</h2>${forms}</section>`;
}

/** What an action has done stands before everything else. */
export function renderOutcome(outcome: Outcome | null): Markup | null {
  if (outcome === null) return null;
  if (outcome.error !== null) return markup`<p role="alert">${outcome.error}</p>`;
  return markup`<p role="status">${outcome.found ?? markup`Done. It is in the <a href="/audit">audit</a>.`}</p>`;
}
