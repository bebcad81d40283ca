// Turns zod schemas into JSON Schema. Schemas with an ID (`.meta({ id })`) become components of the document.
import { z } from "zod";

export type Json = Record<string, unknown>;
export type SchemaWriter = {
  components: Json;
  write(schema: z.ZodType): Json;
};

export function createSchemaWriter(): SchemaWriter {
  const components: Json = {};
  return {
    components,
    write(schema) {
      // The input side describes what the caller sends, before transforms. Answers have no transforms; on this side
      // their objects are open, because clients must ignore fields that they do not know.
      const { $schema: _, $defs = {}, ...rest } = relocate(z.toJSONSchema(schema, { io: "input" }) as Json);
      Object.assign(components, $defs);
      return rest;
    },
  };
}

function relocate(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
}
