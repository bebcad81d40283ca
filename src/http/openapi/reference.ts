// The pages that describe the service: the API documents, /docs, which shows them with swagger-ui-dist, and the guides.
// Everything is made or read at its first request and then kept. The pages may load nothing but these files: no other
// host, no inline script, no inline style.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import type { IncomingMessage } from "node:http";
import { errors } from "../errors.ts";
import type { Page } from "../page.ts";
import { Problem, type Answer } from "../problem.ts";
import { createDocument, type Described } from "./document.ts";
import { readExamples } from "./examples.ts";
import { readGuides, type Guide } from "./guide-pages.ts";
import { writePage } from "./page.ts";

type File = { path: string; operation: string; type: string; policy?: string; read(): string };

const directives = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Swagger UI's style sheet has its icons as data: URLs.
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];
const policyOfReference = directives.join("; ");
const policyOfGuides = directives.filter((directive) => !/^(?:script|connect)-/.test(directive)).join("; ");

/** `uiFolder`: the folder of swagger-ui-dist, null if the package is not installed. */
export function createReference(
  described: Pick<Described, "routes" | "events">,
  uiFolder: string | null = findUi(),
  guides: readonly Guide[] = readGuides(),
): Page[] {
  const write = (variant: "A" | "B") => () => renderDocument({ ...described, examples: readExamples() }, variant);
  const documents: File[] = [
    { path: "/openapi/a.json", operation: "openapi_a", type: "application/json", read: write("A") },
    { path: "/openapi/b.json", operation: "openapi_b", type: "application/json", read: write("B") },
  ];
  const own = (name: string) => () => readFileSync(path.join(import.meta.dirname, name), "utf8");
  const ofGuides: File[] = [
    ...guides.map(({ name, render }) => ({
      path: `/docs/${name}`,
      operation: "docs",
      type: "text/html",
      policy: policyOfGuides,
      read: render,
    })),
    { path: "/docs/guides.css", operation: "docs", type: "text/css", read: own("guides.css") },
  ];
  if (uiFolder === null) return [...[...documents, ...ofGuides].map(createPage), missingPage];
  const ofUi = (name: string) => () => readFileSync(path.join(uiFolder, name), "utf8");
  const page: File[] = [
    { path: "/docs", operation: "docs", type: "text/html", read: () => writePage(errors, guides) },
    { path: "/docs/page.js", operation: "docs", type: "text/javascript", read: own("page.js") },
    { path: "/docs/page.css", operation: "docs", type: "text/css", read: own("page.css") },
    {
      path: "/docs/swagger-ui-bundle.js",
      operation: "docs",
      type: "text/javascript",
      read: ofUi("swagger-ui-bundle.js"),
    },
    { path: "/docs/swagger-ui.css", operation: "docs", type: "text/css", read: ofUi("swagger-ui.css") },
  ];
  return [...documents, ...ofGuides, ...page].map(createPage);
}

/** The text of a document, as it is served and as docs/openapi has it. */
export function renderDocument(described: Described, variant: "A" | "B"): string {
  return `${JSON.stringify(createDocument(described, variant), null, 2)}\n`;
}

function findUi(): string | null {
  try {
    return path.dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  } catch {
    return null;
  }
}

function createPage({ path: at, operation, type, policy = policyOfReference, read }: File): Page {
  // Bytes, because node would copy a text for each client that reads slowly.
  let kept: { body: Buffer; etag: string } | null = null;
  return {
    operation,
    method: "GET",
    path: at,
    respond(request: IncomingMessage): Answer {
      if (kept === null) {
        const body = Buffer.from(read());
        kept = { body, etag: `"${hash("sha256", body)}"` };
      }
      const headers = {
        "content-type": `${type}; charset=utf-8`,
        "cache-control": "public, no-cache",
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        etag: kept.etag,
      };
      if (request.headers["if-none-match"] === kept.etag) return { status: 304, code: null, body: "", headers };
      return { status: 200, code: null, body: kept.body, headers };
    },
  };
}

// The documents do not need the package, so only the page is missing.
const missingPage: Page = {
  operation: "docs",
  method: "GET",
  path: "/docs",
  respond() {
    const message =
      "This page needs the package swagger-ui-dist, which is not installed here. " +
      "The documents are at /openapi/a.json and /openapi/b.json, the guides at /docs/integrate.";
    throw new Problem("ROUTE_NOT_FOUND", null, { message });
  },
};
