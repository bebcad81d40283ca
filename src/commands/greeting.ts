// What `npm start` prints when it is ready: a signed call to copy into a shell, and the way into the console.
import { demoFile, readDemoSecrets } from "./demo-tenants.ts";

/** The call makes its own timestamp, nonce and signature, so it works any number of times. */
export function formatGreeting(url: string, dataDir: string): string {
  const isDemo = readDemoSecrets(dataDir) !== null;
  const [accessKey, template] = isDemo ? ["ak_demo_a", "tpl_tenpercent"] : ["ak_YOURS", "tpl_YOURS"];
  const secret = isDemo
    ? `$(sed -n 's/.*"${accessKey}": "\\([^"]*\\)".*/\\1/p' '${demoFile(dataDir)}')`
    : "YOUR SECRET";
  return `
Listening on ${url}. One signed call to copy (creates a batch of 5 coupons):

  KEY=${accessKey}
  SECRET="${secret}"
  TIMESTAMP=$(date +%s)
  NONCE=$(openssl rand -hex 16)
  BODY='{"request_id":"'$NONCE'","template":"${template}","total_count":5}'
  HASH=$(printf %s "$BODY" | openssl dgst -sha256 -r | cut -d' ' -f1)
  SIGNATURE=$(printf 'POST\\n/v1/batches\\n%s\\n%s\\n%s\\n' "$TIMESTAMP" "$NONCE" "$HASH" |
    openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)
  curl -s ${url}/v1/batches -H 'content-type: application/json' -H "x-svc-access-key: $KEY" \\
    -H "x-svc-timestamp: $TIMESTAMP" -H "x-svc-nonce: $NONCE" -H "x-svc-signature: $SIGNATURE" -d "$BODY"; echo

The whole life of a coupon, step by step: npm run demo
`;
}

/** It goes to standard output only, never to the log: the link signs in. */
export const formatInvitation = (url: string, link: string): string =>
  `The console is at ${url}. This link signs in once:\n${link}`;
