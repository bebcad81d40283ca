// The files that pages load. They load nothing from other hosts.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { HTTPError, HTTPResponse } from "h3";
import { headers } from "./view.ts";

const uPlotFolder = path.join(path.dirname(createRequire(import.meta.url).resolve("uplot/package.json")), "dist");
const assets: Record<string, [folder: string, type: string]> = {
  "icon.svg": [import.meta.dirname, "image/svg+xml"],
  "style.css": [import.meta.dirname, "text/css"],
  "browser.js": [import.meta.dirname, "text/javascript"],
  "uPlot.min.css": [uPlotFolder, "text/css"],
  "uPlot.iife.min.js": [uPlotFolder, "text/javascript"],
};

export function readAsset(name: string): HTTPResponse {
  if (!Object.hasOwn(assets, name)) throw new HTTPError({ status: 404 });
  const [folder, type] = assets[name]!;
  const more = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-cache" };
  return new HTTPResponse(readFileSync(path.join(folder, name), "utf8"), { headers: { ...headers, ...more } });
}
