// The guides, docs/*.md, as pages beside /docs: /docs/integrate is docs/integrate.md. They have no scripts.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { Marked, type Token, type Tokens } from "marked";

export type Guide = { name: string; readTitle(): string; render(): string };
type Heading = { id: string; depth: number; text: string };

// The order of the menu. A guide that is in no group comes last.
const groups: Record<string, string[]> = {
  Integrate: ["integrate", "till", "webhooks", "statements", "certify"],
  Run: ["docker", "operate", "database", "restore", "security", "limits", "performance"],
  Develop: ["design", "contributing"],
};

/** The guides of a folder in the order of the menu, none if there is no such folder. */
export function readGuides(folder = path.join(import.meta.dirname, "../../../docs")): Guide[] {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".md")) : [];
  const rank = (name: string): number => {
    const index = Object.values(groups).flat().indexOf(name);
    return index === -1 ? Infinity : index;
  };
  const names = files.map((file) => file.slice(0, -".md".length)).sort((one, other) => rank(one) - rank(other));
  const guides: Guide[] = names.map((name) => {
    const read = () => readFileSync(path.join(folder, `${name}.md`), "utf8");
    const readTitle = () => /^# (.+)$/m.exec(read())?.[1] ?? name;
    return { name, readTitle, render: () => writeGuidePage({ name, title: readTitle(), markdown: read() }, guides) };
  });
  return guides;
}

function writeGuidePage({ name, title, markdown }: { name: string; title: string; markdown: string }, all: Guide[]) {
  const { html, headings } = renderMarkdown(markdown, new Set(all.map((guide) => guide.name)));
  const menu = writeMenu(all, name, headings);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${escape(title)}: Coupon service</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="guides.css" />
  </head>
  <body>
    <details class="small"><summary>Menu</summary>${menu}</details>
    <div class="large">${menu}</div>
    <main>
${html}
    </main>
  </body>
</html>
`;
}

function writeMenu(all: Guide[], current: string, headings: Heading[]): string {
  const sections = headings
    .filter(({ depth }) => depth === 2)
    .map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`)
    .join("");
  const writeItem = ({ name, readTitle }: Guide): string =>
    name === current
      ? `<li><a href="${name}" aria-current="page">${escape(readTitle())}</a><ul>${sections}</ul></li>`
      : `<li><a href="${name}">${escape(readTitle())}</a></li>`;
  const grouped = Map.groupBy(all, ({ name }) => Object.keys(groups).find((each) => groups[each]!.includes(name)));
  const lists = [...grouped].map(
    ([group = "More", guides]) => `<h2>${group}</h2><ul>${guides.map(writeItem).join("")}</ul>`,
  );
  return `<nav aria-label="Guides"><p><a href="../docs">API reference</a></p>${lists.join("")}</nav>`;
}

/** `names`: the guides that links can lead to. */
function renderMarkdown(markdown: string, names: ReadonlySet<string>): { html: string; headings: Heading[] } {
  const headings: Heading[] = [];
  const marked = new Marked({
    renderer: {
      // Comments mark commands for the tests. Our guides have no other HTML, and none is passed on.
      html: ({ text }) => (/^<!--[^]*?-->\s*$/.test(text) ? "" : escape(text)),
      heading({ tokens, depth }) {
        const text = this.parser.parseInline(tokens);
        const id = makeAnchor(toPlain(tokens), headings);
        headings.push({ id, depth, text: escape(toPlain(tokens)) });
        const link = depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link here">#</a>`;
        return `<h${depth} id="${id}">${text}${link}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = toTarget(href, names);
        return target === null ? text : `<a href="${escape(target)}">${text}</a>`;
      },
      image: ({ text }) => escape(text),
      code({ text, lang }) {
        if (lang === "mermaid") return writeTransitions(text);
        return `<pre tabindex="0"><code>${escape(text)}</code></pre>\n`;
      },
      // A wide table scrolls by itself, so that the page does not.
      table(token) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`;
        const hasHead = token.header.some(({ text }) => text !== "");
        const head = hasHead ? `<thead>${row(token.header, "th")}</thead>` : "";
        return writeTable(head, token.rows.map((cells) => row(cells, "td")).join("\n"));
      },
    },
  });
  return { html: marked.parse(markdown, { async: false }), headings };
}

const writeTable = (head: string, rows: string): string =>
  `<div class="table" tabindex="0"><table>${head}<tbody>\n${rows}\n</tbody></table></div>\n`;

/** The lines of a state diagram, such as `ISSUED --> LOCKED: lock`, because the pages have no scripts. */
function writeTransitions(diagram: string): string {
  const lines = diagram.matchAll(/^ *(\S+) --> (\S+?): (.+)$/gm);
  const rows = [...lines].map(([, from = "", to = "", by = ""]) => {
    const cells = [from === "[*]" ? "" : from, to, by].map((cell) => `<td>${escape(cell)}</td>`);
    return `<tr>${cells.join("")}</tr>`;
  });
  return writeTable("<thead><tr><th>from</th><th>to</th><th>by</th></tr></thead>", rows.join("\n"));
}

/** Where a link of a guide leads on the port of the service; null: to a file that is not served. */
function toTarget(href: string, names: ReadonlySet<string>): string | null {
  if (href.startsWith("#") || /^https?:\/\//.test(href)) return href;
  if (/^openapi\/[ab]\.json$/.test(href)) return `../${href}`;
  const [, name = "", anchor = ""] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  return names.has(name) ? `${name}${anchor}` : null;
}

/** The anchor that GitHub makes of a heading, as in the links of the guides. */
function makeAnchor(text: string, before: Heading[]): string {
  const anchor = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
  let unique = anchor;
  for (let count = 1; before.some(({ id }) => id === unique); count += 1) unique = `${anchor}-${count}`;
  return unique;
}

const toPlain = (tokens: Token[]): string =>
  tokens
    .map((token) => ("tokens" in token && token.tokens ? toPlain(token.tokens) : (token as { text: string }).text))
    .join("");

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
