// Guards of docker-compose.yml.
import { edit, type Sabotage } from "./sabotage.ts";

const file = "docker-compose.yml";
const tests = ["test/operations/compose.test.ts"];

export const dockerGuards: Sabotage[] = [
  { name: "up does not show what tool prints", edits: [edit(file, "    attach: false\n", "")], tests },
  { name: "no log has what tool prints", edits: [edit(file, "      driver: none\n", "      driver: local\n")], tests },
  { name: "up does not start tool", edits: [edit(file, "    profiles: [tool]\n", "")], tests },
  {
    name: "a password in Docker is no part of a URL",
    edits: [edit(file, "postgres://serve@database", "postgres://serve:${SERVE_PASSWORD:?}@database")],
    tests,
  },
  {
    name: "a changed POSTGRES_PASSWORD is set in the database",
    edits: [edit(file, "        alter role postgres password :'postgres';\n", "")],
    tests,
  },
  {
    name: "migrate in Docker needs no password",
    edits: [
      edit(
        file,
        "    network_mode: service:database\n    environment:\n      DATABASE_URL: postgres://postgres@127.0.0.1",
        "    environment:\n      DATABASE_URL: postgres://postgres@database",
      ),
    ],
    tests,
  },
  {
    name: "containers gain no privileges",
    edits: [edit(file, '  security_opt: ["no-new-privileges:true"]\n', "")],
    tests,
  },
  { name: "logs in Docker have a limit", edits: [edit(file, 'max-size: 20m, max-file: "5"', 'max-file: "5"')], tests },
  {
    name: "the image is built once",
    edits: [edit(file, "  pull_policy: never\n", "  build: .\n  pull_policy: never\n")],
    tests,
  },
  {
    name: "the API in Docker is published on this machine only",
    edits: [edit(file, "${PUBLISH_ADDRESS:-127.0.0.1}:", "")],
    tests,
  },
  {
    name: "the queue's driver verifies the database as the other one does",
    edits: [edit("src/database/tls.ts", "{ rejectUnauthorized: false }", "{}")],
    tests: ["test/database/tls.test.ts"],
  },
  {
    name: "the database's certificate is checked against its authority",
    edits: [
      edit("src/database/tls.ts", "    ...(sslrootcert !== undefined && { ca: readAuthority(sslrootcert) }),\n", ""),
    ],
    tests: ["test/database/tls.test.ts"],
  },
  {
    name: "PGPASSWORD fills a URL without a password",
    edits: [edit("src/common/config.ts", "{ password, ...address }", "address")],
    tests: ["test/common/database-address.test.ts"],
  },
];
