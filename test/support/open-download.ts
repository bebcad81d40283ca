// Starts a signed download and leaves the body to the test.
import { request as send, type IncomingMessage } from "node:http";
import { newNonce, sign } from "../../clients/typescript/src/signature.ts";

type Target = { url: string; path: string; accessKey: string; secret: string };

export function openDownload({ url, path, accessKey, secret }: Target): Promise<IncomingMessage> {
  const signed = {
    method: "GET",
    target: path,
    body: Buffer.alloc(0),
    timestamp: String(Math.floor(Date.now() / 1000)),
    nonce: newNonce(),
  };
  const { hostname, port } = new URL(url);
  const headers = {
    "x-svc-access-key": accessKey,
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(secret, signed),
  };
  return new Promise((resolve, reject) =>
    send({ host: hostname, port, path, headers }, resolve).on("error", reject).end(),
  );
}
