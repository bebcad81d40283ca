// The pages that need no signature: health checks, and the API description with its page.
import type { IncomingMessage } from "node:http";
import type { Answer } from "./problem.ts";

export type Page = {
  operation: string;
  method: "GET";
  path: string;
  respond(request: IncomingMessage): Answer | Promise<Answer>;
};
