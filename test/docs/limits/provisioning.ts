// Limits of credentials and of the file that `npm run apply` takes.
import { at, pins, type Limit } from "./limit.ts";

export const provisioningLimits: Limit[] = [
  {
    name: "names in a provisioning file",
    value: "1 to 200 characters",
    places: [],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["1 to 200 printable characters"],
  },
  {
    name: "stores, terminals and skus in a provisioning file",
    value: "1 to 64 characters",
    places: [],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["each 1 to 64 characters", "a sku has 1 to 64 characters"],
  },
  {
    name: "a credential is remembered",
    value: "for 3 s",
    places: [at("src/http/authenticate.ts", "rememberMs = ", "3_000", ";")],
    test: pins(
      "test/http/authenticate.test.ts",
      "a signed request has its credential, which is looked up once and then remembered for 3 s",
    ),
    said: ["within 3 s, without overlap"],
  },
  {
    name: "an access key",
    value: "1 to 64 characters after `ak_`",
    places: [at("src/commands/provisioning.ts", "[A-Za-z0-9_-]{1,", "64", "}$/")],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["`ak_` and 1 to 64 of `A-Za-z0-9_-`"],
  },
  {
    name: "a secret of a credential",
    value: "32 to 256 characters",
    places: [
      at("src/commands/provisioning.ts", "printable(256, ", "32", ")"),
      at("src/commands/provisioning.ts", "printable(", "256", ", 32)"),
    ],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["of 32 to 256 characters"],
  },
  {
    name: "the secret of a webhook",
    value: "24 to 64 bytes",
    places: [
      at("src/commands/provisioning.ts", "bytes.length >= ", "24", " &&"),
      at("src/commands/provisioning.ts", "bytes.length <= ", "64", " &&"),
    ],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["base64 of 24 to 64 bytes"],
  },
  {
    name: "the URL of a webhook",
    value: "at most 2048 characters",
    places: [at("src/commands/provisioning.ts", "z.string().max(", "2048", ")")],
    test: pins(
      "test/commands/limits.test.ts",
      "The texts of a provisioning file have the limits that the documents name",
    ),
    said: ["`url`, at most 2048 characters"],
  },
  {
    name: "an ID in a provisioning file",
    value: "1 to 40 characters after the prefix",
    places: [at("src/commands/provisioning.ts", "[a-z0-9]{1,", "40", "}$`)")],
    test: pins("test/commands/limits.test.ts", "An id has 1 to 40 characters after its prefix, a secret at least 32"),
    said: ["1 to 40 of `a-z0-9`"],
  },
  {
    name: "`percent` of a discount",
    value: "above 0, at most 100, with up to four decimals",
    places: [
      at("src/commands/provisioning.ts", ".max(", "100", ")\n"),
      at("src/commands/provisioning.ts", "1,", "4", "})?$/"),
    ],
    test: pins("test/commands/provisioning.test.ts", "a percentage has at most four decimals"),
    said: ["with up to four decimals"],
  },
];
