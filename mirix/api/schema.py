"""What the OpenAPI generator must be told about our classes; loaded when the app registry is ready."""

from __future__ import annotations

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

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
