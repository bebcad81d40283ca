// Authenticates a request. Missing and malformed headers are named, because that depends on the request alone. An
// unknown key and a wrong signature get the same answer and take about the same time: an unknown key is verified
// against a random secret, and a wrong signature costs a database lookup, as an unknown key does. Only the log tells
// them apart.
import { randomBytes } from "node:crypto";
import type { Gate, Variant } from "../gate/gate.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { createMac, type Mac } from "../crypto/mac.ts";
import { Problem } from "./problem.ts";
import { open, credentialPurpose } from "../crypto/seal.ts";
import { isInWindow, readAuthHeaders, verify, type HeaderIssue } from "../crypto/request-signature.ts";

export type Credential = {
  accessKey: string;
  tenantId: number;
  credentialId: number;
  variant: Variant;
  secret: string;
  mac: Mac;
};
export type Received = {
  method: string;
  target: string;
  headers: Record<string, string | string[] | undefined>;
  body: Uint8Array;
};
export type Caller = { credential: Credential; nonce: string };

// How long a replaced secret still works. A revoked credential stops working at once: the database checks each call.
const rememberMs = 3_000;
const maxRemembered = 10_000;

export function createAuthenticator({
  gate,
  keys,
  now = Date.now,
  uptime = () => performance.now(),
}: {
  gate: Pick<Gate, "findCredential">;
  keys: MasterKeys;
  now?: () => number;
  /** In ms. This clock keeps running when the system clock is set. */
  uptime?: () => number;
}) {
  const nobody = createMac(randomBytes(32)); // equivalent mutant (literal 32): any random secret will do
  const remembered = new Map<string, { credential: Credential; until: number }>();
  const loading = new Map<string, Promise<Credential | null>>();

  // Concurrent requests for the same unknown key share one lookup.
  function load(accessKey: string, deadline: number): Promise<Credential | null> {
    const running = loading.get(accessKey) ?? loadOnce(accessKey, deadline).finally(() => loading.delete(accessKey));
    loading.set(accessKey, running);
    return running;
  }

  async function loadOnce(accessKey: string, deadline: number): Promise<Credential | null> {
    const row = await gate.findCredential(accessKey, deadline, remembered.has(accessKey));
    remembered.delete(accessKey);
    if (row === null) return null;
    const secret = open(keys, credentialPurpose(accessKey), row.sealed_secret);
    const credential = {
      accessKey,
      tenantId: row.tenant_id,
      credentialId: row.credential_id,
      variant: row.variant,
      secret,
      mac: createMac(secret),
    };
    // Drops the oldest entry: a map keeps its entries in the order of insertion.
    if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value!);
    remembered.set(accessKey, { credential, until: uptime() + rememberMs });
    return credential;
  }

  function recall(accessKey: string): Credential | null {
    const entry = remembered.get(accessKey);
    return entry !== undefined && entry.until > uptime() ? entry.credential : null;
  }

  return async function authenticate(received: Received, deadline: number): Promise<Caller> {
    const auth = readAuthHeaders(received.headers);
    if ("issues" in auth) throw refuseHeaders(auth.issues);
    const { method, target, body } = received;
    const signed = { method, target, timestamp: auth.timestamp, nonce: auth.nonce, body };

    let credential = recall(auth.accessKey);
    if (credential === null || !verify(credential.mac, signed, auth.signature)) {
      const stale = credential;
      credential = await load(auth.accessKey, deadline);
      const isSame = stale !== null && stale.secret === credential?.secret;
      // equivalent mutant (operand): the same secret gives the same answer again
      const isGenuine = !isSame && verify(credential?.mac ?? nobody, signed, auth.signature);
      if (credential === null) throw refuse("unknown key");
      if (!isGenuine) throw refuse("wrong signature");
    }
    if (!isInWindow(auth.timestamp, now())) throw refuseTimestamp(now());
    return { credential, nonce: auth.nonce };
  };
}

const refuse = (reason: string) => new Problem("UNAUTHENTICATED", null, { reason });

function refuseHeaders(issues: HeaderIssue[]): Problem {
  const message = "Headers of the signature are missing or malformed; see details.issues.";
  return new Problem("UNAUTHENTICATED", { issues }, { reason: "malformed", message });
}

function refuseTimestamp(now: number): Problem {
  return new Problem("TIMESTAMP_OUT_OF_WINDOW", { server_time: new Date(now).toISOString() }, { reason: "timestamp" });
}
