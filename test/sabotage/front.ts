// Guards of the HTTP front before a request is read.
import { edit, type Sabotage } from "./sabotage.ts";

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
];
