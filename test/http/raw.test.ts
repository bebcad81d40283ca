// What node answers by itself unless it is told not to: with our shape too. Found by test/fuzz/gate.test.ts.
import t from "tap";
import { sendBytes } from "../support/client.ts";
import { startStub } from "../support/stub.ts";

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
