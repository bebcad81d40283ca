// `npm run diagrams`: draws docs/diagrams/*.svg from the .dot files beside them, with Graphviz. Shapes come from `dot`,
// colours from the style sheet below, which follows the reader's light or dark mode.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defineCommand } from "../../src/command-line/command.ts";
import { runCommand } from "../../src/command-line/run-command.ts";
import { root } from "./copy.ts";

type Theme = { card: string; frame: string; ink: string; soft: string; line: string; boxes: Record<string, string> };

const light: Theme = {
  card: "#fbfcfd",
  frame: "#d0d7de",
  ink: "#1f2328",
  soft: "#57606a",
  line: "#6e7781",
  boxes: { box: "#ffffff", open: "#ddf4ff", held: "#fff4c8", done: "#dafbe1", over: "#eef0f3", group: "#f3f5f8" },
};
const dark: Theme = {
  card: "#0d1117",
  frame: "#3d444d",
  ink: "#e6edf3",
  soft: "#9ea7b3",
  line: "#8b949e",
  boxes: { box: "#1c2129", open: "#0c2d4d", held: "#3d2f06", done: "#0f3320", over: "#24292f", group: "#151b23" },
};

// No variables of CSS: some viewers do not know them.
const rules = ({ card, frame, ink, soft, line, boxes }: Theme): string => `
  .card { fill: ${card}; stroke: ${frame} }
  text { fill: ${ink}; font-family: Helvetica, Arial, "Liberation Sans", sans-serif }
  .edge text { fill: ${soft} }
  .edge path { stroke: ${line} } .edge polygon { stroke: ${line}; fill: ${line} }
  .node path { fill: ${boxes["box"]}; stroke: ${line} }
  .cluster path, .group path { fill: ${boxes["group"]}; stroke: ${frame} }
  .cluster text, .group text { fill: ${soft} }
  .group text { transform: translate(2px, 7px) } .cluster text { transform: translate(2px, 3px) }
${["open", "held", "done", "over"].map((name) => `  .${name} path { fill: ${boxes[name]} }`).join("\n")}
  .start ellipse { fill: ${line}; stroke: ${line} } .title { font-weight: bold }`;

const style = `<style>${rules(light)}
@media (prefers-color-scheme: dark) {${rules(dark)}
}</style>`;

const defaults = [
  ["-Gfontname=Helvetica", "-Gfontsize=12", "-Gpad=0.2", "-Gstyle=rounded", "-Glabeljust=l"],
  ["-Nfontname=Helvetica", "-Nfontsize=12", "-Nshape=box", "-Nstyle=rounded,filled", "-Nmargin=0.14,0.08"],
  ["-Efontname=Helvetica", "-Efontsize=11", "-Earrowsize=0.7"],
].flat();

/** The SVG begins with the hash of its source, so that a test knows a stale one. */
export const hashSource = (source: string): string => createHash("sha256").update(source).digest("hex").slice(0, 16);

function draw(file: string): void {
  const source = readFileSync(file, "utf8");
  const drawn = execFileSync("dot", ["-Tsvg", ...defaults], { input: source, encoding: "utf8" });
  // From the graph's own background, a rectangle of the same size becomes the card.
  const [, width = "", height = ""] = /viewBox="0.00 0.00 ([\d.]+) ([\d.]+)"/.exec(drawn)!;
  const size = `width="${Number(width) - 1}" height="${Number(height) - 1}"`;
  const card = `<rect class="card" x="0.5" y="0.5" ${size} rx="8"/>`;
  const svg = drawn
    .slice(drawn.indexOf("<svg"))
    .replaceAll(/<!--[^]*?-->\n?/g, "")
    .replaceAll(/<title>[^<]*<\/title>\n?/g, "")
    .replace(/<polygon fill="white"[^>]*\/>\n/, "")
    // The first line of a box is its name.
    .replaceAll(/(class="node(?! group)[^"]*">\n<path[^>]*\/>\n<text) /g, '$1 class="title" ')
    .replace(/<g id="graph0"/, `${style}\n${card}\n$&`);
  writeFileSync(file.replace(/\.dot$/, ".svg"), `<!-- ${path.basename(file)} ${hashSource(source)} -->\n${svg}`);
}

const command = defineCommand({
  name: "diagrams",
  about: "Draws docs/diagrams/*.svg from their sources. Needs Graphviz: the package graphviz.",
  examples: [""],
  exitCodes: "0 done, 1 dot is missing or refuses a source",
  async run() {
    for (const name of globSync("docs/diagrams/*.dot", { cwd: root })) draw(path.join(root, name));
    process.exit(0);
  },
});

if (import.meta.main) await runCommand("npm run diagrams", command);
