// Guards of the HTTP front before a request is read, and of command lines.
import { edit, type Sabotage } from "./sabotage.ts";

const timeOuts = ["test/http/time-outs.test.ts"];

export const frontGuards: Sabotage[] = [
  {
    name: "a Host that makes no URL",
    edits: [edit("src/http/app.ts", 'fetch(requestWithURL(request, "http://localhost/"))', "fetch(request)")],
    tests: ["test/http/routing.test.ts"],
  },
  {
    name: "the answer to an error that the handler misses",
    edits: [
      edit(
        "src/http/listener.ts",
        "else refuse(answerProblem(request, response, toProblem(error)));",
        "else response.writeHead(500).end();",
      ),
    ],
    tests: ["test/http/listener.test.ts"],
  },
  {
    name: "one check for all probes",
    edits: [edit("src/http/probes.ts", "(checking ??=", "(checking =")],
    tests: ["test/http/probes.test.ts"],
  },
  {
    name: "time to read a content type",
    edits: [edit("src/http/body.ts", "(charset", "\\s*(charset")],
    tests: ["test/http/precedence.test.ts"],
  },
  {
    name: "the memory of a credential after the clock was set back",
    edits: [
      edit("src/http/authenticate.ts", "until: uptime() + rememberMs", "until: now() + rememberMs"),
      edit("src/http/authenticate.ts", "entry.until > uptime()", "entry.until > now()"),
    ],
    tests: ["test/http/authenticate.test.ts"],
  },
  {
    name: "search for codes in the arguments of codes",
    edits: [edit("src/commands/codes.ts", '    refuseCodesInArguments(keys, [batch, flags.reason ?? ""]);\n', "")],
    tests: ["test/commands/codes.test.ts"],
  },
  {
    name: "search for codes in the reason of codes --destroy",
    edits: [
      edit(
        "src/commands/codes.ts",
        'refuseCodesInArguments(keys, [batch, flags.reason ?? ""])',
        "refuseCodesInArguments(keys, [batch])",
      ),
    ],
    tests: ["test/commands/codes.test.ts"],
  },
  {
    name: "search for codes in the arguments of webhooks",
    edits: [edit("src/commands/webhooks.ts", "  refuseCodesInArguments(keys, args);\n", "")],
    tests: ["test/commands/webhooks.test.ts"],
  },
  {
    name: "an ID in an argument that looks like a code",
    edits: [edit("src/commands/refuse-codes-in-arguments.ts", " && !isMadeId(text)", "")],
    tests: ["test/http/code-places.test.ts"],
  },
  {
    name: "no cache keeps an answer",
    edits: [edit("src/http/problem.ts", ', "cache-control": "no-store"', "")],
    tests: ["test/http/outcomes.test.ts"],
  },
  {
    name: "no shared cache keeps a file",
    edits: [edit("src/http/download.ts", '"private, no-cache"', '"public, no-cache"')],
    tests: ["test/http/download.test.ts"],
  },
  {
    name: "the time-out of a head",
    edits: [edit("src/http/listener.ts", "limits.headersTimeoutSeconds", "limits.requestTimeoutSeconds")],
    tests: timeOuts,
  },
  {
    name: "the time-out of an idle connection",
    edits: [edit("src/http/listener.ts", "limits.keepAliveTimeoutSeconds", "limits.requestTimeoutSeconds")],
    tests: timeOuts,
  },
  {
    name: "the time-out of a stalled connection",
    edits: [edit("src/server/connections.ts", "  server.timeout = stalledAfterMs;\n", "")],
    tests: timeOuts,
  },
  {
    name: "at a stop, an answer that does not end is cut",
    edits: [edit("src/http/drain.ts", "cutAfterMs = 5_000", "cutAfterMs = 50_000")],
    tests: timeOuts,
  },
  {
    name: "two idempotency-keys are refused",
    edits: [edit("src/http/read-call.ts", "given.length === 1 && !key", "!key")],
    tests: ["test/http/issues.test.ts"],
  },
  {
    name: "a GET takes no body",
    edits: [
      edit(
        "src/http/read-call.ts",
        '  if (route.method === "GET" && request.body.length > 0)\n' +
          '    issues.push({ path: "(body)", message: "a GET takes no body" });\n',
        "",
      ),
    ],
    tests: ["test/http/issues.test.ts"],
  },
  {
    name: "100-continue before a body that is not too large",
    edits: [
      edit(
        "src/http/listener.ts",
        '    if (!(Number(request.headers["content-length"]) > limits.bodyBytes)) response.writeContinue();\n',
        "",
      ),
    ],
    tests: ["test/http/precedence.test.ts"],
  },
  {
    name: "no 100-continue before a body that is too large",
    edits: [
      edit(
        "src/http/listener.ts",
        'if (!(Number(request.headers["content-length"]) > limits.bodyBytes)) response',
        "response",
      ),
    ],
    tests: ["test/http/precedence.test.ts"],
  },
  {
    name: "the number of keys whose buckets are kept",
    edits: [edit("src/http/token-bucket.ts", "maxKept = 10_000", "maxKept = 10")],
    tests: ["test/http/token-bucket.test.ts"],
  },
];
