import { z } from "zod";
import { signPortalLink } from "../../crypto/portal-link.ts";
import { madeId, ok, timeOfAnswer } from "../answer-fields.ts";
import { requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId });

const answer = z.object({
  ok,
  portal_link: madeId("lnk"),
  url: z.string().describe("Signs in once. Whoever has it sees what you may see: pass it on as you would a password."),
  expires_at: timeOfAnswer,
});

export const openPortal: Route = {
  operation: "open_portal",
  summary: "Makes a link to your pages: batches, redemptions, events, statements and webhooks.",
  description:
    "The link is good once, within ten minutes, and opens a session of an hour in a browser. The session shows what " +
    "the caller may see, and changes nothing. It ends early when the access key is revoked. A retry gets the same " +
    "link.",
  method: "POST",
  path: "/v1/portal",
  isWrite: true,
  hasOwnTransaction: true,
  schema: () => input,
  answer: () => answer,
  // The database knows the link by its ID only.
  render(body, { keys, consoleUrl }) {
    const { portal_link: link, expires_at } = JSON.parse(body) as { portal_link: string; expires_at: string };
    const url = `${consoleUrl}/sign-in?link=${signPortalLink(keys, link)}`;
    return JSON.stringify({ ok: true, portal_link: link, url, expires_at });
  },
};
