// Every documented limit. `npm exec -c 'node test/docs/limits/table.ts'` prints the table of docs/limits.md.
import { renderTable } from "./limit.ts";
import { operationLimits } from "./operations.ts";
import { provisioningLimits } from "./provisioning.ts";
import { requestLimits } from "./requests.ts";

export const limits = [...requestLimits, ...operationLimits, ...provisioningLimits];

if (import.meta.filename === process.argv[1]) console.log(renderTable(limits));
