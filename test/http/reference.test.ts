// The API description and its page: what is served, and what the page may load.
import { readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { ConfigError, defaultLimits, readConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/common/log.ts";
import { errors } from "../../src/http/errors.ts";
import { listen } from "../../src/http/listener.ts";
import { createReference } from "../../src/http/openapi/reference.ts";
import { Problem } from "../../src/http/problem.ts";
import { serve } from "../../src/serve.ts";
import { sendPlain, type Reply } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { startService, type Running } from "../support/service.ts";

let service: Running;
t.before(async () => {
  service = await startService(t);
});
const get = (target: string, headers: Record<string, string> = {}): Promise<Reply> =>
  sendPlain(service.url, "GET", target, headers);

t.test("The committed documents are served, unsigned, and again only if they have changed", async (t) => {
  for (const letter of ["a", "b"]) {
    const target = `/openapi/${letter}.json`;
    const committed = readFileSync(path.join(root, `docs/openapi/${letter}.json`), "utf8");
    const { status, headers, text } = await get(target);
    t.strictSame([status, headers["content-type"]], [200, "application/json; charset=utf-8"]);
    t.equal(text, committed);
    const etag = headers["etag"] as string;
    const again = await get(target, { "if-none-match": etag });
    t.strictSame([again.status, again.text, again.headers["etag"]], [304, "", etag]);
    const head = await sendPlain(service.url, "HEAD", target);
    t.strictSame(
      [head.status, head.text, head.headers["content-length"]],
      [200, "", String(Buffer.byteLength(committed))],
    );
    t.equal((await sendPlain(service.url, "POST", target)).status, 405);
  }
});

t.test("The page loads only files of this service, and has no inline script or style", async (t) => {
  const { status, headers, text } = await get("/docs");
  t.strictSame([status, headers["content-type"]], [200, "text/html; charset=utf-8"]);
  t.equal(
    headers["content-security-policy"],
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  t.strictSame([headers["x-content-type-options"], headers["referrer-policy"]], ["nosniff", "no-referrer"]);
  const loaded = [...text.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"]+)"/g)].map(([, target = ""]) => target);
  const files = loaded.filter((target) => target !== "data:,");
  t.strictSame(files, ["docs/swagger-ui.css", "docs/page.css", "docs/swagger-ui-bundle.js", "docs/page.js"]);
  t.notMatch(text, /<style|style=|<script(?![^>]* src=)| on\w+=/);
  t.strictSame(
    createReference({ routes: [], events: [] }).map(({ path: at, operation }) => [at.slice(1), operation]),
    [
      ["openapi/a.json", "openapi_a"],
      ["openapi/b.json", "openapi_b"],
      ...["docs", "docs/page.js", "docs/page.css", "docs/swagger-ui-bundle.js", "docs/swagger-ui.css"].map((at) => [
        at,
        "docs",
      ]),
    ],
    "the names in the log and in the metrics",
  );
  for (const target of files) {
    const file = await get(`/${target}`);
    const type = target.endsWith(".js") ? "text/javascript" : "text/css";
    t.strictSame([file.status, file.headers["content-type"]], [200, `${type}; charset=utf-8`], target);
    const again = await get(`/${target}`, { "if-none-match": file.headers["etag"] as string });
    t.equal(again.status, 304, target);
  }
});

t.test("Every error code has an anchor on the page, with its status and meaning", async (t) => {
  const { text } = await get("/docs");
  const rows = [...text.matchAll(/<tr id="error-(\w+)"><td>.*?<\/td><td>(\d+)<\/td><td>(.*?)<\/td><\/tr>/g)];
  t.strictSame(
    rows.map(([, code, status, meaning]) => [code, Number(status), meaning!.replace(/<\/?code>/g, "`")]),
    Object.entries(errors).map(([code, { status, meaning }]) => [code, status, meaning]),
  );
});

t.test("Without swagger-ui-dist the page is a 404 that says so, and the documents are still there", async (t) => {
  const pages = createReference({ routes: [], events: [] }, null);
  t.strictSame(
    pages.map(({ path: at, operation }) => [at, operation]),
    [
      ["/openapi/a.json", "openapi_a"],
      ["/openapi/b.json", "openapi_b"],
      ["/docs", "docs"],
    ],
  );
  try {
    await pages[2]!.respond({} as never);
    t.fail("an answer");
  } catch (error) {
    const { code, message } = error as Problem;
    fits(t, [code, message], ["ROUTE_NOT_FOUND", /swagger-ui-dist, which is not installed/]);
  }
});

t.test("DOCS=off: neither page nor documents", async (t) => {
  t.strictSame(
    [readConfig({}).docs, readConfig({ DOCS: "on" }).docs, readConfig({ DOCS: "off" }).docs],
    [true, true, false],
  );
  t.throws(() => readConfig({ DOCS: "no" }), new ConfigError('DOCS must be on or off, not "no"'));
  const log = createLog("silent");
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
  const { address, keys } = service;
  const { url, stop } = await serve({ address, keys, limits: defaultLimits, hasDocs: false, listening, log });
  t.teardown(stop);
  for (const target of ["/docs", "/docs/page.js", "/docs/swagger-ui.css", "/openapi/a.json", "/openapi/b.json"])
    fits(t, await sendPlain(url, "GET", target), { status: 404, json: { code: "ROUTE_NOT_FOUND" } }, target);
});
