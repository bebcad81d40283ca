// Answers at the edge of HTTP: what node answers by itself unless told not to, what a header cannot hold. Found by test/fuzz.
import t from "tap";
import { sendBytes } from "../support/client.ts";
import { bodies, startStub } from "../support/stub.ts";

t.test("a CONNECT, a request without a Host and one with an expectation of its own get an answer of the usual shape", async (t) => {
  const { url } = await startStub(t);
  const cases: [string, number, string][] = [
    ["CONNECT /v1/coupons/lock HTTP/1.1\r\nhost: x", 404, "ROUTE_NOT_FOUND"],
    ["GET /v1/events HTTP/1.1\r\nconnection: close", 401, "UNAUTHENTICATED"],
    ["GET /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: a miracle", 401, "UNAUTHENTICATED"],
  ];
  for (const [head, status, code] of cases) {
    const answer = await sendBytes(url, `${head}\r\n\r\n`);
    t.match(answer, new RegExp(`^HTTP/1.1 ${status} [^]*\r\nx-request-id: req_[^]*"code":"${code}"`), head);
  }
});

t.test("blanks at the ends of a request_id are in x-request-id too", async (t) => {
  const { asA } = await startStub(t);
  const post = async (request_id: string) => (await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], request_id })).headers["x-request-id"];
  t.equal(await post(" "), "%20");
  t.equal(await post("  a b "), "%20%20a b%20");
});
