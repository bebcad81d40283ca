// Certificates for tests of TLS, and https in front of a service.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { createServer } from "node:tls";
import type { Test } from "tap";
import { listenOnLoopback } from "./listen.ts";

/** file: the certificate, which is its own authority. */
export type Certificate = { key: Buffer; cert: Buffer; file: string };

/** `name`: such as IP:127.0.0.1. Returns null without openssl. The folder is made if needed. */
export function makeCertificate(folder: string, name: string): Certificate | null {
  mkdirSync(folder, { recursive: true });
  const [key, file] = [path.join(folder, "key.pem"), path.join(folder, "ca.pem")];
  const made = spawnSync("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=coupon.test".split(" "),
    ...`-addext subjectAltName=${name} -keyout ${key} -out ${file}`.split(" "),
  ]);
  return made.status === 0 ? { key: readFileSync(key), cert: readFileSync(file), file } : null;
}

/** Speaks https in front of an http service on loopback. Returns its URL. */
export async function startHttps(t: Test, certificate: Certificate, url: string): Promise<string> {
  const server = createServer(certificate, (near) => {
    const far = connect(Number(new URL(url).port), "127.0.0.1");
    for (const socket of [near, far]) socket.on("error", () => [near, far].forEach((one) => one.destroy()));
    near.pipe(far).pipe(near);
  });
  server.on("tlsClientError", () => {});
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return `https://127.0.0.1:${await listenOnLoopback(server)}`;
}
