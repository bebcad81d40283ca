// A client without HTTP: the checks and the gate of the service, without sockets, signatures and limits. In place of a
// file, a download gets what the database says of it.
import { newId } from "../../src/formats/id.ts";
import { defaultConsoleUrl } from "../../src/config/console.ts";
import { newNonce } from "../../clients/typescript/src/signature.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { CredentialRow, Gate } from "../../src/gate/gate.ts";
import { toAnswer, toProblem } from "../../src/http/problem.ts";
import { parseInput, readCall } from "../../src/http/read-call.ts";
import { createMatcher, splitTarget } from "../../src/http/router.ts";
import { routes } from "../../src/http/routes/table.ts";
import { toClient, type CallOptions, type Client, type Reply } from "./client.ts";
import { checkDescribed } from "./described-answers.ts";

const match = createMatcher(routes);
// As long as the service takes for an answer.
const answerWithinMs = 3_500;

export function createDirectClient(gate: Gate, keys: MasterKeys, accessKey: string): Client {
  let credential: Promise<CredentialRow | null> | null = null;

  async function call(method: string, target: string, body: Uint8Array, options: CallOptions = {}): Promise<Reply> {
    const deadline = performance.now() + answerWithinMs;
    const input = parseInput(body, keys);
    const requestId = input.requestId ?? newId("req");
    const reply = (status: number, text: string, more: Record<string, string> = {}): Reply => {
      const headers = { "content-type": "application/json", "x-request-id": requestId, ...more };
      const answer = { status, headers, text, json: JSON.parse(text) };
      const isFile = status === 200 && match(method, splitTarget(target).path).route.download;
      if (!isFile) checkDescribed("", { method, target, accessKey }, answer);
      return answer;
    };
    try {
      const caller = (await (credential ??= gate.findCredential(accessKey, deadline, true)))!;
      const { path, query } = splitTarget(target);
      const { route, segments } = match(method, path);
      const idempotencyKeys = options.idempotencyKey === undefined ? [] : [options.idempotencyKey];
      const request = { query, segments, idempotencyKeys, body, input };
      const { hashBy: _, ...reading } = readCall(route, caller.variant, request, keys);
      const { credential_id, tenant_id } = caller;
      const args = { ...reading.args, is_counted: true };
      const sent = { credential_id, nonce: options.nonce ?? newNonce(), request_id: requestId, ...reading, args };
      const outcome = await gate.perform(tenant_id, sent, deadline, route);
      const text =
        outcome.status === 200 && route.render
          ? route.render(outcome.body, { keys, consoleUrl: defaultConsoleUrl })
          : outcome.body;
      return reply(outcome.status, text, outcome.isReplay ? { "idempotent-replayed": "true" } : {});
    } catch (error) {
      const answer = toAnswer(toProblem(error), requestId);
      // Such is also the error of an answer that is not described.
      if (answer.code === "INTERNAL_ERROR") throw error;
      return reply(answer.status, answer.body, answer.headers);
    }
  }

  return toClient(call);
}
