// A request_id in the header x-request-id. A fuzz test found this case.
import t from "tap";
import { bodies, startStub } from "../support/stub.ts";

t.test("Spaces at the ends of a request_id are percent-encoded in x-request-id", async (t) => {
  const { asA } = await startStub(t);
  const post = async (request_id: string) =>
    (await asA.post("/v1/coupons/lock", { ...bodies["/v1/coupons/lock"], request_id })).headers["x-request-id"];
  t.equal(await post(" "), "%20");
  t.equal(await post("  a b "), "%20%20a b%20");
});
