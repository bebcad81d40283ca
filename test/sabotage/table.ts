// Every sabotage that `npm run sabotage` knows. Add one for each new guard, in the file of its subject.
import { accessGuards } from "./access.ts";
import { backgroundGuards } from "./background.ts";
import { clientCallGuards } from "./client-calls.ts";
import { clientGuards } from "./clients.ts";
import { clockGuards } from "./clock.ts";
import { commandGuards } from "./commands.ts";
import { couponGuards } from "./coupons.ts";
import { descriptionGuards } from "./description.ts";
import { dockerGuards } from "./docker.ts";
import { embeddedGuards } from "./embedded.ts";
import { frontGuards } from "./front.ts";
import { gateGuards } from "./gate.ts";
import { invariantGuards } from "./invariants.ts";
import { longRunGuards } from "./long-runs.ts";
import { numberGuards } from "./numbers.ts";
import { operationGuards } from "./operations.ts";
import { ownerGuards } from "./owners.ts";
import { provisioningGuards } from "./provisioning.ts";
import { reportGuards } from "./reports.ts";
import { pythonClientGuards } from "./python-client.ts";
import { requestGuards } from "./requests.ts";
import type { Sabotage } from "./sabotage.ts";
import { sequencerGuards } from "./sequencer.ts";
import { statementGuards } from "./statements.ts";
import { tableGuards } from "./tables.ts";
import { webhookGuards } from "./webhooks.ts";
import { webhookStatusGuards } from "./webhook-status.ts";
import { workerGuards } from "./worker.ts";

export const sabotages: Sabotage[] = [
  ...couponGuards,
  ...clockGuards,
  ...frontGuards,
  ...gateGuards,
  ...requestGuards,
  ...accessGuards,
  ...ownerGuards,
  ...workerGuards,
  ...backgroundGuards,
  ...sequencerGuards,
  ...tableGuards,
  ...webhookGuards,
  ...webhookStatusGuards,
  ...longRunGuards,
  ...operationGuards,
  ...commandGuards,
  ...embeddedGuards,
  ...dockerGuards,
  ...numberGuards,
  ...provisioningGuards,
  ...reportGuards,
  ...invariantGuards,
  ...statementGuards,
  ...descriptionGuards,
  ...clientGuards,
  ...clientCallGuards,
  ...pythonClientGuards,
];
