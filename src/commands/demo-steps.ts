// The steps of npm run demo: each sends a call, prints it and its answer, and throws if that is not the expected one.
import {
  isRefused,
  RefusedError,
  type Answer,
  type Client,
  type ErrorCode,
  type Input,
  type OperationName,
  type ReplyInfo,
} from "../../clients/typescript/src/index.ts";

// A caller with the last answer that it got.
export type Actor = { client: Client; reply: ReplyInfo | null };

// isReplay: whether the answer repeats an earlier one.
export async function perform<O extends OperationName>(
  title: string,
  actor: Actor,
  operation: O,
  input: Input<O>,
  isReplay = false,
): Promise<Answer<O>> {
  const answer = await send(title, actor, operation, input);
  if (answer instanceof RefusedError) throw answer;
  if (isReplay !== actor.reply?.isReplay)
    throw new Error(`the last answer should ${isReplay ? "" : "not "}be a replay`);
  return answer;
}

export async function refuse<O extends OperationName>(
  title: string,
  actor: Actor,
  operation: O,
  input: Input<O>,
  code: ErrorCode,
): Promise<void> {
  const answer = await send(title, actor, operation, input);
  if (!isRefused(answer, code)) throw new Error(`the last answer should be ${code}`);
}

async function send<O extends OperationName>(
  title: string,
  actor: Actor,
  operation: O,
  input: Input<O>,
): Promise<Answer<O> | RefusedError> {
  const call = actor.client[operation] as unknown as (input: Input<O>) => Promise<Answer<O>>;
  const answer = await call(input).catch((error: unknown) => {
    if (isRefused(error)) return error;
    throw error;
  });
  const shown = { ...input, ...("coupon" in input && { coupon: mask(String(input.coupon)) }) };
  const mark = actor.reply?.isReplay ? " (Idempotent-Replayed)" : "";
  const result = answer instanceof RefusedError ? answer.message : `200${mark} ${JSON.stringify(answer)}`;
  console.log(`\n${title}\n  ${operation} ${JSON.stringify(shown)}\n  ${result}`);
  return answer;
}

export async function expectStatus(title: string, pos: Actor, merchant: string, coupon: string, expected: string) {
  const answer = await perform(title, pos, "query", { coupon, merchant });
  if (answer.coupon.status !== expected) throw new Error(`the coupon should be ${expected}`);
}

export function printHeading(text: string): void {
  console.log(`\n=== ${text} ===`);
}

export function mask(code: string): string {
  return `${code.slice(0, 4)}············`;
}
