// Signs a request of coupon.http, as docs/integrate.md describes. Each request runs it before it is sent.
const accessKey = request.headers.findByName("x-svc-access-key").getRawValue();
const hasBody = request.method === "POST";
// The paths of POST have no variables, and some tools cannot fill in those of a URL when there is a body.
const url = hasBody ? request.url.getRaw() : request.url.tryGetSubstituted();
const target = url.slice(url.indexOf("/v1/"));
const timestamp = String(Math.floor(Date.now() / 1000));
// No code of a coupon has the letter u, so the service never takes the nonce for one.
const nonce = Date.now() + "u" + String(Math.random()).slice(2, 14);
const body = hasBody ? request.body.tryGetSubstituted() : "";
const hash = crypto.sha256().updateWithText(body).digest().toHex();
const lines = [request.method, target, timestamp, nonce, hash, ""].join("\n");
const hmac = crypto.hmac.sha256().withTextSecret(request.environment.get(accessKey));

request.variables.set("timestamp", timestamp);
request.variables.set("nonce", nonce);
request.variables.set("signature", hmac.updateWithText(lines).digest().toHex());
