// Reads docs/examples/coupon.http and sends its requests, as the HTTP Client of JetBrains does. It knows the features
// that the file uses: variables, an environment file, and scripts that run before a request and after its answer.
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { runInNewContext } from "node:vm";

export type HttpRequest = {
  title: string;
  scriptFile: string;
  method: string;
  url: string;
  headers: [name: string, value: string][];
  body: string;
  handler: string;
};
// A comment that tells the reader what to do in a terminal.
export type Command = { command: string };
export type Player = {
  globals: Map<string, string>;
  // Whether all variables of the request have values.
  isReady(request: HttpRequest): boolean;
  // Sends the request and returns what its handler logged.
  send(request: HttpRequest): Promise<string[]>;
};

const requestPattern = new RegExp(
  [
    /^< (?<scriptFile>\S+)\n/,
    /(?<method>GET|POST) (?<url>\S+)\n/,
    /(?<headers>(?:[\w-]+: .*\n)+)/,
    /(?:\n(?<body>\{[^]*?\n))?/,
    /\n> \{%(?<handler>[^]*?)%\}\n/,
  ]
    .map(({ source }) => source)
    .join(""),
);

export function readHttpFile(text: string): (HttpRequest | Command)[] {
  return text
    .split(/^### /m)
    .slice(1)
    .flatMap((section) => {
      const [title = "", ...lines] = section.split("\n");
      const groups = requestPattern.exec(lines.join("\n"))?.groups;
      if (groups === undefined) throw new Error(`the test cannot read the request "${title}"`);
      const { scriptFile = "", method = "", url = "", headers = "", body = "", handler = "" } = groups;
      const pairs = headers.trim().split("\n");
      const request: HttpRequest = {
        title,
        scriptFile,
        method,
        url,
        headers: pairs.map((line) => line.split(": ") as [string, string]),
        body: body.trimEnd(),
        handler,
      };
      const commands = [...section.matchAll(/^# (bash .*)$/gm)].map(([, command = ""]) => ({ command }));
      return [request, ...commands];
    });
}

export function createPlayer(folder: string, environmentName: string): Player {
  const globals = new Map<string, string>();
  const file = path.join(folder, "http-client.private.env.json");
  const readEnvironment = () =>
    (JSON.parse(readFileSync(file, "utf8")) as Record<string, Record<string, string>>)[environmentName]!;
  const fill = (text: string, own: Map<string, string>) =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => {
      return readEnvironment()[name] ?? globals.get(name) ?? own.get(name) ?? whole;
    });

  return {
    globals,
    isReady: ({ url, body }) => !fill(url + body, new Map()).includes("{{"),
    async send(request) {
      const own = new Map<string, string>();
      const logged: string[] = [];
      const client = { global: globals, log: (line: string) => logged.push(line) };
      const substitutable = (text: string) => ({ getRaw: () => text, tryGetSubstituted: () => fill(text, own) });
      const readHeader = (name: string) => request.headers.find(([other]) => other === name)![1];
      const given = {
        method: request.method,
        url: substitutable(request.url),
        body: substitutable(request.body),
        headers: { findByName: (name: string) => ({ getRawValue: () => readHeader(name) }) },
        environment: { get: (name: string) => readEnvironment()[name] },
        variables: own,
      };
      runInNewContext(readFileSync(path.join(folder, request.scriptFile), "utf8"), { client, crypto, request: given });

      const reply = await fetch(fill(request.url, own), {
        method: request.method,
        headers: request.headers.map(([name, value]) => [name, fill(value, own)] as [string, string]),
        ...(request.body !== "" && { body: fill(request.body, own) }),
      });
      const isJson = reply.headers.get("content-type")?.startsWith("application/json");
      const body: unknown = isJson ? await reply.json() : await reply.text();
      if (reply.status !== 200) throw new Error(`${request.title}: ${reply.status} ${JSON.stringify(body)}`);
      runInNewContext(request.handler, { client, response: { status: reply.status, body } });
      return logged;
    },
  };
}

// The crypto object of JetBrains' scripts.
const crypto = {
  sha256: () => build(createHash("sha256")),
  hmac: { sha256: () => ({ withTextSecret: (secret: string) => build(createHmac("sha256", secret)) }) },
};

function build(hash: Hash | Hmac) {
  return {
    updateWithText: (text: string) => build(hash.update(text)),
    digest: () => ({ toHex: () => hash.digest("hex") }),
  };
}
