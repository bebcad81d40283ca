// Runs in Postman before each request: signs it, as docs/integrate.md describes.
const { SHA256, HmacSHA256 } = require("crypto-js");

function sign({ method, target, timestamp, nonce, body }, secret) {
  const hash = SHA256(body).toString();
  return HmacSHA256([method, target, timestamp, nonce, hash, ""].join("\n"), secret).toString();
}

// No code of a coupon has the letter u, so the service never takes such an ID for one.
const makeId = () => pm.variables.replaceIn("{{$guid}}").replace(/-/g, "u");
pm.variables.set("request_id", makeId());

// {{access_key}} signs with {{secret}}, and {{till}} with {{till_secret}}.
const key = pm.request.headers.get("x-svc-access-key").replace(/[{}]/g, "");
const secretName = key === "access_key" ? "secret" : `${key}_secret`;
const secret = pm.variables.get(secretName);
if (!secret) throw new Error(`Set the variable ${secretName} of the collection`);

// What Postman puts on the request line, and into the body.
const url = pm.variables.replaceIn(pm.request.url.toString());
const target = url.replace(/^https?:\/\/[^/]+/, "").replace(/[^!-~]|["<>]/gu, encodeURIComponent);
const timestamp = String(Math.floor(Date.now() / 1000));
const nonce = makeId();
const body = pm.variables.replaceIn((pm.request.body && pm.request.body.raw) || "");
const signature = sign({ method: pm.request.method, target, timestamp, nonce, body }, secret);
pm.request.headers.upsert({ key: "x-svc-timestamp", value: timestamp });
pm.request.headers.upsert({ key: "x-svc-nonce", value: nonce });
pm.request.headers.upsert({ key: "x-svc-signature", value: signature });
