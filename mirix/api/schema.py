"""What the OpenAPI generator must be told about our classes; loaded when the app registry is ready."""

from __future__ import annotations

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from mirix.api.authentication import ApiKeyAuthentication


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """The `X-API-Key` header as a security scheme."""

    target_class = ApiKeyAuthentication
    name = "ApiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Return the security scheme object."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "A client's key, made by `create_api_key`; permission read, write or admin.",
        }
