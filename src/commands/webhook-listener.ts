// npm run webhooks -- listen: a receiver to try webhooks with, on loopback. It verifies and prints what arrives, and
// answers late, with an error or never on request. It needs no database.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { verifyWebhook, WebhookError } from "../../clients/typescript/src/index.ts";
import { defineCommand } from "../command-line/command.ts";
import { replaceUnprintable } from "../formats/field-types.ts";
import { readWebhookSecrets } from "../config/config.ts";
import { openPort } from "../server/open-port.ts";
import { onStop } from "../common/program.ts";

export type ListenerOptions = {
  port: number;
  secrets: readonly string[];
  /** The answer to a genuine webhook. */
  status: number;
  lateSeconds: number;
  isSilent: boolean;
  print: (line: string) => void;
};

const seconds = 1_000;

export async function startListener(options: ListenerOptions): Promise<{ url: string; stop: () => Promise<void> }> {
  const seen = new Set<string>();
  const stopping = new AbortController();
  const server = createServer((request, response) => {
    answer(request, response, options, seen, stopping.signal).catch((error: Error) => {
      if (!stopping.signal.aborted) options.print(`a request broke off: ${error.message}`);
      response.destroy();
    });
  });
  const settings = { host: "--host", port: "--port" };
  const url = await openPort(server, { host: "127.0.0.1", port: options.port, settings });
  return {
    url,
    stop: () => {
      stopping.abort();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { secrets, status, lateSeconds, isSilent, print }: ListenerOptions,
  seen: Set<string>,
  stopping: AbortSignal,
): Promise<void> {
  const body = await buffer(request);
  const id = String(request.headers["webhook-id"] ?? "");
  const refusal = refuse(secrets, request, body);
  const marks = [
    ...(request.headers["webhook-test"] === "true" ? ["test"] : []),
    ...(refusal === null && seen.has(id) ? ["seen before"] : []),
  ];
  if (refusal === null) seen.add(id);
  const code = refusal === null ? status : 401;
  const promised = isSilent ? "no answer" : `answer ${code}${lateSeconds === 0 ? "" : ` after ${lateSeconds} s`}`;
  const judged = [refusal ?? "genuine", ...marks, promised].join(", ");
  print(`${new Date().toISOString()} ${show(id) || "no webhook-id"}: ${judged}`);
  print(show(body.toString("utf8")));
  if (isSilent) return;
  if (lateSeconds > 0) await setTimeout(lateSeconds * seconds, undefined, { signal: stopping });
  response.writeHead(code).end();
}

function refuse(secret: readonly string[], { headers }: IncomingMessage, body: Buffer): string | null {
  try {
    verifyWebhook({ secret, headers, body });
    return null;
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    return error.message;
  }
}

// A terminal might execute control characters.
const show = (text: string): string => replaceUnprintable(text, "?");

export const listen = defineCommand({
  name: "listen",
  about:
    "Receives webhooks on loopback: verifies each, prints it, and answers 204, or 401 if it is not genuine. Needs no " +
    "database. Start `work` with WEBHOOK_ALLOW=127.0.0.0/8. Ctrl-C stops it.",
  flags: {
    port: { type: "count", value: "N", about: "the port", default: 3000 },
    status: { type: "count", value: "N", about: "answer with this status, 200 to 599", default: 204 },
    late: { type: "count", value: "SECONDS", about: "answer late: the service waits 15 s" },
    never: { type: "switch", about: "never answer" },
  },
  settings: ["WEBHOOK_SECRET"],
  examples: ["WEBHOOK_SECRET=whsec_…", "--port 3001 --status 500 --late 5"],
  exitCodes: "0 stopped by a signal, 1 failed",
  refuse: ({ flags }) => {
    if (flags.port > 65_535) return "--port must be at most 65535";
    return flags.status < 200 || flags.status > 599 ? "--status must be from 200 to 599" : null;
  },
  async run({ flags }) {
    const secrets = readWebhookSecrets();
    const print = (line: string) => console.log(line);
    const { port, status, late: lateSeconds = 0, never: isSilent } = flags;
    const listener = await startListener({ port, secrets, status, lateSeconds, isSilent, print });
    onStop(listener.stop);
    print(`listening on ${listener.url}`);
  },
});
