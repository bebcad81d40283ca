"""The types of the client are those of the API description: python3 -m unittest test_types"""

from __future__ import annotations

import inspect
import json
import typing
import unittest
from decimal import Decimal
from pathlib import Path

import coupon_client
from coupon_client import ClientA, ClientB

folder = Path(__file__).resolve().parents[2] / "docs/openapi"
Schema = dict[str, typing.Any]


class Types(unittest.TestCase):
    def test_operations(self) -> None:
        """Each operation has the described parameters, body and answer, in both variants"""
        for name, client in [("a", ClientA), ("b", ClientB)]:
            document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            count = 0
            for path, methods in document["paths"].items():
                if path.startswith("/v1/"):
                    for operation in methods.values():
                        self.compare_operation(document, operation, client)
                        count += 1
            self.assertGreater(count, 13)

    def compare_operation(self, document: Schema, operation: Schema, client: type) -> None:
        name = operation["operationId"]
        method = getattr(client, name)
        hints = typing.get_type_hints(method)
        parameters = [resolve(document, parameter) for parameter in operation.get("parameters", [])]
        described = {parameter["name"] for parameter in parameters if parameter["in"] in ("path", "query")}
        # `from` is a keyword of Python, so its parameter is `from_`.
        names = {parameter.rstrip("_") for parameter in inspect.signature(method).parameters}
        self.assertEqual(names - {"self", "request", "into"}, described, name)
        if "requestBody" in operation:
            schema = resolve(document, operation["requestBody"]["content"]["application/json"]["schema"])
            # The client makes a missing request_id.
            optional = {**schema, "required": [field for field in schema["required"] if field != "request_id"]}
            self.compare(document, optional, hints["request"], name)
        content = resolve(document, operation["responses"]["200"])["content"]
        if "application/json" in content:
            self.compare(document, content["application/json"]["schema"], hints["return"], name)

    def test_webhooks(self) -> None:
        """Each event has the described fields, in both variants"""
        fields = {
            value: kind.__required_keys__
            for kind in typing.get_args(coupon_client.Event)
            for value in flatten(typing.get_type_hints(kind)["event_type"])
        }
        for name in ("a", "b"):
            document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            described = {}
            for event, methods in document["webhooks"].items():
                schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
                described[event] = set(resolve(document, schema)["required"])
            self.assertEqual(described, fields)

    def compare(self, document: Schema, given: Schema, kind: typing.Any, place: str) -> None:
        schema = resolve(document, given)
        parts = [part for part in schema.get("anyOf", []) if part != {"type": "null"}]
        if len(parts) == 1 and len(typing.get_args(kind)) == 2 and type(None) in typing.get_args(kind):
            return self.compare(document, parts[0], typing.get_args(kind)[0], place)
        if len(parts) > 1 and hasattr(kind, "__required_keys__"):
            for part in parts:
                self.compare(document, part, kind, place)
            return
        if "oneOf" in schema and "properties" not in schema and hasattr(kind, "__required_keys__"):
            schema = merge([resolve(document, part) for part in schema["oneOf"]])
        if "properties" in schema and hasattr(kind, "__required_keys__"):
            hints = typing.get_type_hints(kind)
            self.assertEqual(set(hints), set(schema["properties"]), place)
            self.assertEqual(kind.__required_keys__, set(schema.get("required", [])), place)
            for name, field in schema["properties"].items():
                self.compare(document, field, hints[name], f"{place}.{name}")
        elif schema.get("type") == "array":
            self.assertIs(typing.get_origin(kind), list, place)
            self.compare(document, schema["items"], typing.get_args(kind)[0], f"{place}[]")
        elif typing.get_origin(kind) is not dict:
            allowed = list_types(document, schema)
            self.assertIn(flatten(kind), [allowed, allowed | {float}], place)


def flatten(kind: typing.Any) -> set[typing.Any]:
    """The values of literals, and the types of unions."""
    if typing.get_origin(kind) is typing.Literal:
        return set(typing.get_args(kind))
    if typing.get_origin(kind) is typing.Union:
        return {value for part in typing.get_args(kind) for value in flatten(part)}
    return {kind}


def merge(schemas: list[Schema]) -> Schema:
    """The schema of a field is that of any of the schemas."""
    properties = {
        name: {"anyOf": [schema["properties"][name] for schema in schemas]} for name in schemas[0]["properties"]
    }
    return {"properties": properties, "required": schemas[0]["required"]}


def list_types(document: Schema, schema: Schema) -> set[typing.Any]:
    """The types of a value, or the values that it may have."""
    if "anyOf" in schema:
        return {found for part in schema["anyOf"] for found in list_types(document, resolve(document, part))}
    if "enum" in schema or "const" in schema:
        return set(schema.get("enum", [schema.get("const")]))
    types: dict[str, list[typing.Any]] = {
        "string": [str],
        "boolean": [bool],
        "integer": [int],
        "number": [int, Decimal],
        "null": [type(None)],
    }
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {found for name in names for found in types[name]}


def resolve(document: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        found: Schema = document
        for name in schema["$ref"].split("/")[1:]:
            found = found[name]
        schema = found
    return schema


if __name__ == "__main__":
    unittest.main()
