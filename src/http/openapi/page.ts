// The HTML of /docs: the variant switch, the place of Swagger UI, and the list of error codes.
import type { ErrorEntry } from "../errors.ts";
import type { Guide } from "./guide-pages.ts";

export function writePage(errors: Record<string, ErrorEntry>, guides: readonly Guide[]): string {
  const [first] = guides;

  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Coupon service: API reference</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
    <link rel="stylesheet" href="docs/page.css" />
    <script src="docs/swagger-ui-bundle.js" defer></script>
    <script src="docs/page.js" defer></script>
  </head>
  <body>
    <nav>
      <a href="docs?variant=a" data-variant="a">Variant A</a>
      <a href="docs?variant=b" data-variant="b">Variant B</a>
      <a href="#errors">Error codes</a>
      <a href="openapi/a.json">a.json</a>
      <a href="openapi/b.json">b.json</a>${first === undefined ? "" : `\n      <a href="docs/${first.name}">Guides</a>`}
    </nav>
    <p class="note">Calls must be signed, so this page sends none. "Sign a request" below says how to sign.</p>
    <main id="reference"><noscript>This page needs JavaScript. The documents above do not.</noscript></main>
    <section id="errors">
      <h2>Error codes</h2>
      <p>In order of precedence: if several errors apply, the first one is returned. Decide by code.</p>
      <table>
        <thead><tr><th>Code</th><th>Status</th><th>Meaning and what to do</th></tr></thead>
        <tbody>
${Object.entries(errors).map(writeRow).join("\n")}
        </tbody>
      </table>
    </section>
  </body>
</html>
`;
}

function writeRow([code, { status, meaning }]: [string, ErrorEntry]): string {
  const link = `<a href="#error-${code}">${code}</a>`;
  return `          <tr id="error-${code}"><td>${link}</td><td>${status}</td><td>${toHtml(meaning)}</td></tr>`;
}

/** Our own Markdown has only code spans. */
function toHtml(markdown: string): string {
  const escaped = markdown.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replace(/`([^`]+)`/g, "<code>$1</code>");
}
