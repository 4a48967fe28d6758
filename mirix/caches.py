"""The setting `CACHES`: a Redis where there is one, else memory of the process. Nothing rests on either."""

from __future__ import annotations

from typing import Any


def caches(redis_url: str) -> dict[str, dict[str, Any]]:
    """Return Django's setting for a Redis of this URL; for none where it is empty."""
    if not redis_url:
        return {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    return {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": redis_url,
            "KEY_PREFIX": "mirix",
            "OPTIONS": {
                # Never the default, pickle: whoever writes to Redis would run code here.
                "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                "SOCKET_CONNECT_TIMEOUT": 1,
                "SOCKET_TIMEOUT": 1,
                "IGNORE_EXCEPTIONS": True,
            },
        }
    }
