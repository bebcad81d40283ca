// Relative links and anchors in the project's Markdown files lead somewhere.
import { existsSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { root } from "../support/copy.ts";
import { allMarkdown, read, readAnchors, readLinks } from "./markdown.ts";

t.test("every relative link and every anchor resolves", async (t) => {
  t.ok(allMarkdown.includes("README.md"));
  for (const name of allMarkdown) {
    for (const { target, line } of readLinks(read(name))) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const linked = file === "" ? name : path.join(path.dirname(name), decodeURIComponent(file));
      t.ok(existsSync(path.join(root, linked)), `${name}:${line}: ${target}`);
      if (anchor !== undefined && linked.endsWith(".md") && existsSync(path.join(root, linked)))
        t.ok(readAnchors(read(linked)).has(anchor), `${name}:${line}: ${target}`);
    }
  }
});

t.test("anchors are made as GitHub makes them", async (t) => {
  t.strictSame(
    [...readAnchors("# One `two`, three\n## [Link](x.md) & more\n```bash\n# no heading\n```\n### Same\n### Same\n")],
    ["one-two-three", "link--more", "same", "same-1"],
  );
  t.strictSame(
    readLinks("a [b](c.md#d) `[e](f)` ![g](h.png)\n\n[i]: j.md\n").map(({ target }) => target),
    ["c.md#d", "h.png", "j.md"],
  );
});
