// Manifests of Kubernetes, validated against its schemas.
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Service } from "kubernetes-models/v1";

const models = [Deployment, Job, NetworkPolicy, PodDisruptionBudget, Service];

/** Returns what is wrong. The schemas allow fields that they do not know: the validation never reads those. */
export function findErrors(manifest: { apiVersion: string; kind: string }): string[] {
  const model = models.find(({ apiVersion, kind }) => manifest.apiVersion === apiVersion && manifest.kind === kind);
  if (model === undefined) return [`${manifest.apiVersion} ${manifest.kind} has no schema here`];
  const isRead = new Set<string>();
  try {
    model.prototype.validate.call(watch(manifest, "", isRead));
  } catch (error) {
    return [(error as Error).message];
  }
  return listPaths(manifest, "")
    .filter((path) => !isRead.has(path))
    .map((path) => `${path} is unknown`);
}

function watch<T>(value: T, path: string, isRead: Set<string>): T {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, key) {
      const found: unknown = Reflect.get(target, key);
      if (typeof key === "symbol" || !Object.hasOwn(target, key)) return found;
      isRead.add(`${path}/${key}`);
      return watch(found, `${path}/${key}`, isRead);
    },
  });
}

function listPaths(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [`${path}/${key}`, ...listPaths(inner, `${path}/${key}`)]);
}
