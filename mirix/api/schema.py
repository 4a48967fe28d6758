"""What the OpenAPI generator must be told about our classes; loaded when the app registry is ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent

from mirix.api.authentication import CallerAuthentication
from mirix.api.permissions import MayReview


class CallerScheme(OpenApiAuthenticationExtension):
    """The three ways to say who calls; one of them is enough, and where people decide it is the token."""

    target_class = CallerAuthentication
    name = ["ApiKey", "Token", "ClientId"]

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[str]]]:
        """Return the alternatives of a route."""
        for_people = any(isinstance(rule, MayReview) for rule in auto_schema.view.get_permissions())
        return [{name: []} for name in (["Token"] if for_people else self.name)]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, str]]:
        """Return the security scheme objects, in the order of the names."""
        return [
            {
                "type": "apiKey",
                "in": "header",
                "name": "X-API-Key",
                "description": "A client's key, made by `create_api_key`; permission read, write or admin.",
            },
            {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "JWT",
                "description": "A member's access token from `/auth/token`: reviewers read and decide, "
                "operators read and write, administrators do all of it.",
            },
            {
                "type": "apiKey",
                "in": "header",
                "name": "X-Client-ID",
                "description": "A client's id alone, read and write; only where the server is set to trust "
                "its network (`MIRIX_TRUST_CLIENT_ID_HEADER`).",
            },
        ]


ERRORS = {
    "Error": {
        "type": "object",
        "description": "Why not, in words.",
        "properties": {"detail": {"type": "string"}},
        "required": ["detail"],
    },
    "Invalid": {
        "type": "object",
        "description": "What is wrong: a list of messages per field, nested as the request is; `detail` "
        "where no field is to blame.",
        "additionalProperties": {},
        "minProperties": 1,
    },
}


class DescribedErrors(AutoSchema):
    """Adds to each operation the refusals that its kind may end with, and the shape of every refusal."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Any:
        """Return the operation object with all its responses."""
        operation = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        responses = operation["responses"]
        for status, description in self._refusals(operation):
            responses.setdefault(status, {"description": description})
        for status, response in responses.items():
            if status >= "400" and "content" not in response:
                shape = self._component("Invalid" if status == "400" else "Error")
                response["content"] = {"application/json": {"schema": shape}}
        operation["responses"] = dict(sorted(responses.items()))
        return operation

    def _refusals(self, operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield "400", "Invalid, naming the field."
        if operation.get("security"):
            yield "401", "No valid credential."
            yield "403", "The credential does not permit this; the answer names what would."
        if "{" in self.path:
            yield "404", "No such row, or it is somebody else's."
        if "requestBody" in operation:
            yield "408", "The body did not come in time."
            yield "413", "The body is too large."
            yield "415", "The body is not JSON."
        if operation.get("security") and self.method not in ("GET", "HEAD"):
            yield "409", "What it is about was erased while it was on its way; nothing was stored."
        if self.view.get_throttles():
            yield "429", "Too many requests; see Retry-After."
        yield "503", "The database is not available, or busy with what this is about; see Retry-After."

    def _component(self, name: str) -> dict[str, str]:
        component = ResolvedComponent(
            name=name, type=ResolvedComponent.SCHEMA, object=name, schema=ERRORS[name]
        )
        self.registry.register_on_missing(component)
        return component.ref
