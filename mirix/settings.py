"""Settings, all from the environment; the table of names is in the README.

Safe by default: DEBUG is off unless asked for, only loopback is served, and the secret key is made on
first use and kept in the state directory with mode 0600.
"""

from __future__ import annotations

import hmac
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from mirix.caches import caches
from mirix.secret import load_or_create_secret
from mirix.unfold import UNFOLD as UNFOLD

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.str("MIRIX_VAR_DIR", default="") or BASE_DIR / "var").resolve()
MIRIX_PORT = env.int("MIRIX_PORT", default=8531)


def _either(cast: str, name: str, default: object) -> Any:
    """Read `MIRIX_<name>`, else the original's `<name>`, else the default."""
    prefixed = f"MIRIX_{name}"
    return getattr(env, cast)(prefixed if prefixed in os.environ else name, default=default)


DEBUG = env.bool("MIRIX_DEBUG", default=False)
SECRET_KEY = env.str("MIRIX_SECRET_KEY", default="") or load_or_create_secret(VAR_DIR / "secret_key")
ALLOWED_HOSTS = env.list("MIRIX_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

INSTALLED_APPS = [
    "mirix",  # first: its commands and templates stand in for those of the packages
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "mirix.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "rest_framework_simplejwt.token_blacklist",
    "procrastinate.contrib.django",
    "mirix.tenants",
    "conversations",
    "skills",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "mirix.tenants.requests.RequestScopeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "mirix.urls"
WSGI_APPLICATION = "mirix.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# With DATABASE_URL unset, PostgreSQL from the wheel runs in the state directory (mirix.embedded).
DATABASE_URL = env.str("DATABASE_URL", default="")
_DATABASE = env.db_url_config(DATABASE_URL) if DATABASE_URL else {"ENGINE": "mirix.embedded", "NAME": "mirix"}
if _DATABASE["ENGINE"] not in ("django.db.backends.postgresql", "mirix.embedded"):
    raise ImproperlyConfigured("DATABASE_URL: PostgreSQL is the only database engine, so postgres://….")
DATABASES = {"default": _DATABASE | {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = caches(env.str("MIRIX_REDIS_URL", default=""))
DJANGO_REDIS_LOG_IGNORED_EXCEPTIONS = True

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True  # files are served from the packages: no STATIC_ROOT, no collectstatic
WHITENOISE_AUTOREFRESH = DEBUG

MIRIX_MAX_REQUEST_BYTES = env.int("MIRIX_MAX_REQUEST_BYTES", default=20_000_000)
DATA_UPLOAD_MAX_MEMORY_SIZE = MIRIX_MAX_REQUEST_BYTES

MIRIX_TRUST_CLIENT_ID_HEADER = env.bool("MIRIX_TRUST_CLIENT_ID_HEADER", default=False)
SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": timedelta(minutes=env.int("MIRIX_ACCESS_TOKEN_MINUTES", default=15)),
    "REFRESH_TOKEN_LIFETIME": timedelta(days=env.int("MIRIX_REFRESH_TOKEN_DAYS", default=7)),
    "USER_ID_CLAIM": "sub",
    "ALGORITHM": "HS256",
    # A key for this purpose alone, and of full length whatever the secret key is.
    "SIGNING_KEY": hmac.new(SECRET_KEY.encode(), b"mirix.tokens", "sha256").hexdigest(),
    "LEEWAY": 5,  # seconds by which the clocks of hosts may differ
}

MIRIX_TRUSTED_PROXIES = env.int("MIRIX_TRUSTED_PROXIES", default=0)
# Requests a minute of one caller, by kind of route; 0 = no limit (mirix.api.throttles).
MIRIX_THROTTLE_READ = env.int("MIRIX_THROTTLE_READ", default=3_000)
MIRIX_THROTTLE_WRITE = env.int("MIRIX_THROTTLE_WRITE", default=3_000)
MIRIX_THROTTLE_SEARCH = env.int("MIRIX_THROTTLE_SEARCH", default=3_000)
MIRIX_THROTTLE_DREAM = env.int("MIRIX_THROTTLE_DREAM", default=60)
MIRIX_THROTTLE_AUTH = env.int("MIRIX_THROTTLE_AUTH", default=60)

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: it refuses who tried too many passwords
    "django.contrib.auth.backends.ModelBackend",
]
AXES_ENABLED = not DEBUG
AXES_FAILURE_LIMIT = env.int("MIRIX_LOGIN_FAILURES", default=10)
AXES_COOLOFF_TIME = timedelta(minutes=env.int("MIRIX_LOGIN_LOCKOUT_MINUTES", default=15))
# Of name and address together: neither can a stranger lock others out, nor a name be tried from one place.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "mirix.api.addresses.client_address"
AXES_LOCKOUT_CALLABLE = "mirix.api.lockout.locked_out"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# What an organization may choose for itself; these hold where it did not (tenants.models.INHERITED).
MIRIX_REVIEW_POLICY = env.str("MIRIX_REVIEW_POLICY", default="required")
MIRIX_CONVERSATION_RETENTION_DAYS = env.int("MIRIX_CONVERSATION_RETENTION_DAYS", default=30)
MIRIX_UNDISTILLED_RETENTION_DAYS = env.int("MIRIX_UNDISTILLED_RETENTION_DAYS", default=180)
MIRIX_RAW_RETENTION_DAYS = env.int("MIRIX_RAW_RETENTION_DAYS", default=30)
MIRIX_SEARCH_LOG_RETENTION_DAYS = env.int("MIRIX_SEARCH_LOG_RETENTION_DAYS", default=30)
MIRIX_DAILY_TOKEN_BUDGET = env.int("MIRIX_DAILY_TOKEN_BUDGET", default=0)
MIRIX_REDACT_ON_INTAKE = env.bool("MIRIX_REDACT_ON_INTAKE", default=False)

# Notifications, which each organization turns on for itself.
MIRIX_PUBLIC_URL = env.str("MIRIX_PUBLIC_URL", default=f"http://127.0.0.1:{MIRIX_PORT}").rstrip("/")
MIRIX_WEBHOOK_ALLOW_PRIVATE = env.bool("MIRIX_WEBHOOK_ALLOW_PRIVATE", default=False)
vars().update(env.email_url("EMAIL_URL", default="consolemail://" if DEBUG else "smtp://localhost:25"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("MIRIX_EMAIL_FROM", default="mirix@localhost")

MIRIX_DISTILLER = env.str("MIRIX_DISTILLER", default="auto")
MIRIX_DISTILLER_MAX_CONCURRENCY = env.int("MIRIX_DISTILLER_MAX_CONCURRENCY", default=4)
MIRIX_DISTILLER_MAX_ATTEMPTS = env.int("MIRIX_DISTILLER_MAX_ATTEMPTS", default=5)
MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = _either("int", "SKILL_TRIGGER_SESSION_THRESHOLD", 5)
MIRIX_SESSION_IDLE_MINUTES = env.int("MIRIX_SESSION_IDLE_MINUTES", default=30)
MIRIX_SKILL_EDIT_BUDGET_B0 = _either("float", "SKILL_EDIT_BUDGET_B0", 1.0)
MIRIX_SKILL_EDIT_BUDGET_ALPHA_FAIL = _either("float", "SKILL_EDIT_BUDGET_ALPHA_FAIL", 1.0)
MIRIX_SKILL_EDIT_BUDGET_ALPHA_SUCC = _either("float", "SKILL_EDIT_BUDGET_ALPHA_SUCC", 0.5)
MIRIX_SKILL_EDIT_BUDGET_MIN = _either("int", "SKILL_EDIT_BUDGET_MIN", 0)
MIRIX_SKILL_EDIT_BUDGET_MAX = _either("int", "SKILL_EDIT_BUDGET_MAX", 6)
MIRIX_SKILL_MAX_EDIT_CHAR_DELTA = _either("int", "SKILL_MAX_EDIT_CHAR_DELTA", 800)
MIRIX_SKILL_EDIT_MAJOR_RATIO = _either("float", "SKILL_EDIT_MAJOR_RATIO", 0.4)
MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS = _either("int", "SKILL_MAX_INSTRUCTIONS_CHARS", 12_000)
MIRIX_SKILL_SEARCH_METHOD = env.str("MIRIX_SKILL_SEARCH_METHOD", default="hybrid")
MIRIX_SKILL_HYBRID_RRF_K = env.int("MIRIX_SKILL_HYBRID_RRF_K", default=15)
MIRIX_EMBEDDING_MODEL = env.str("MIRIX_EMBEDDING_MODEL", default="")
MIRIX_WORKER_STALLED_SECONDS = env.int("MIRIX_WORKER_STALLED_SECONDS", default=60)

# A worker is taken for dead when its heartbeat is older than MIRIX_WORKER_STALLED_SECONDS.
PROCRASTINATE_WORKER_DEFAULTS = {
    "update_heartbeat_interval": max(1.0, MIRIX_WORKER_STALLED_SECONDS / 6),
    "stalled_worker_timeout": float(MIRIX_WORKER_STALLED_SECONDS),
    # Then long jobs are asked to stop; they end between two steps and go on in the next worker.
    "shutdown_graceful_timeout": 1.0,
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["mirix.api.authentication.CallerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["mirix.api.permissions.CallerPermission"],
    "DEFAULT_THROTTLE_CLASSES": ["mirix.api.throttles.RouteThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["mirix.api.parsers.StrictJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["mirix.api.filters.StrictFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "mirix.api.pagination.RecentFirstPagination",
    "DEFAULT_METADATA_CLASS": None,  # the schema describes the routes, not OPTIONS
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "mirix.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "mirix",
    "DESCRIPTION": "Skill memory for agents: sessions in, reviewed skills out.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "AuthorKindEnum": "skills.models.AuthorKind",
        "RevisionStateEnum": "skills.models.RevisionState",
        "SessionStateEnum": "conversations.models.SessionState",
        "SessionTagEnum": "conversations.models.SessionTag",
        "IntakeStateEnum": "conversations.models.IntakeState",
        "RunStateEnum": "skills.models.RunState",
    },
}

DEFAULT_EXCEPTION_REPORTER = "mirix.reports.SecretReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "mirix.reports.SecretFilter"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("MIRIX_LOG_LEVEL", default="INFO")},
    "loggers": {"procrastinate": {"level": "WARNING"}},
}
