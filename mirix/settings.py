"""Settings, all from the environment; the table of names is in the README.

Safe by default: DEBUG is off unless asked for, only loopback is served, and the secret key is made on
first use and kept in the state directory with mode 0600.
"""

from __future__ import annotations

import hmac
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from mirix import environment as env
from mirix.caches import caches
from mirix.environment import PREPARE_THRESHOLD
from mirix.logs import FORMATTERS, LINE
from mirix.secret import load_or_create_secret
from mirix.unfold import UNFOLD as UNFOLD

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = env.folder("MIRIX_VAR_DIR", default=BASE_DIR / "var")
MINUTES_OF_A_YEAR = 525_600
MIRIX_PORT = env.whole("MIRIX_PORT", default=8531, low=1, high=65_535)


def _either(name: str) -> str:
    """Return `MIRIX_<name>`, or the original's `<name>` where only that is set."""
    prefixed = f"MIRIX_{name}"
    return name if name in os.environ and prefixed not in os.environ else prefixed


DEBUG = env.switch("MIRIX_DEBUG", default=False)
SECRET_KEY = env.text("MIRIX_SECRET_KEY") or load_or_create_secret(VAR_DIR / "secret_key")
ALLOWED_HOSTS = env.words("MIRIX_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

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
    "mirix.request_log.RequestLogMiddleware",  # first: what the others log belongs to the request
    "mirix.metrics.CountingMiddleware",  # it counts what the others answer too
    "django.middleware.security.SecurityMiddleware",
    "mirix.headers.HeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "mirix.tenants.requests.RequestScopeMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "mirix.admin_collisions.CollisionMiddleware",
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
DATABASE_URL = env.text("DATABASE_URL")
_DATABASE = env.database("DATABASE_URL") or {
    "ENGINE": "mirix.embedded",
    "NAME": "mirix",
    "OPTIONS": {"prepare_threshold": PREPARE_THRESHOLD},
}
# For `mirix.prepared` alone: of any other statement the connection would keep the whole text, to count it.
MIRIX_PREPARE_THRESHOLD = _DATABASE["OPTIONS"].pop("prepare_threshold")
DATABASES = {"default": _DATABASE | {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = caches(env.url("MIRIX_REDIS_URL", default="", schemes=("redis", "rediss", "unix")))
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

MIRIX_MAX_REQUEST_BYTES = env.whole("MIRIX_MAX_REQUEST_BYTES", default=20_000_000, low=1, high=2_000_000_000)
DATA_UPLOAD_MAX_MEMORY_SIZE = MIRIX_MAX_REQUEST_BYTES

MIRIX_TRUST_CLIENT_ID_HEADER = env.switch("MIRIX_TRUST_CLIENT_ID_HEADER", default=False)
SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": timedelta(
        minutes=env.whole("MIRIX_ACCESS_TOKEN_MINUTES", default=15, low=1, high=MINUTES_OF_A_YEAR)
    ),
    "REFRESH_TOKEN_LIFETIME": timedelta(
        days=env.whole("MIRIX_REFRESH_TOKEN_DAYS", default=7, low=1, high=3_650)
    ),
    "USER_ID_CLAIM": "sub",
    "ALGORITHM": "HS256",
    # A key for this purpose alone, and of full length whatever the secret key is.
    "SIGNING_KEY": hmac.new(SECRET_KEY.encode(), b"mirix.tokens", "sha256").hexdigest(),
    "LEEWAY": 5,  # seconds by which the clocks of hosts may differ
}

MIRIX_TRUSTED_PROXIES = env.whole("MIRIX_TRUSTED_PROXIES", default=0, low=0, high=100)
# Requests a minute of one caller, by kind of route; 0 = no limit (mirix.api.throttles).
MIRIX_THROTTLE_READ = env.whole("MIRIX_THROTTLE_READ", default=3_000, low=0, high=1_000_000)
MIRIX_THROTTLE_WRITE = env.whole("MIRIX_THROTTLE_WRITE", default=3_000, low=0, high=1_000_000)
MIRIX_THROTTLE_SEARCH = env.whole("MIRIX_THROTTLE_SEARCH", default=3_000, low=0, high=1_000_000)
MIRIX_THROTTLE_DREAM = env.whole("MIRIX_THROTTLE_DREAM", default=60, low=0, high=1_000_000)
MIRIX_THROTTLE_AUTH = env.whole("MIRIX_THROTTLE_AUTH", default=60, low=0, high=1_000_000)

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # first: it refuses who tried too many passwords
    "django.contrib.auth.backends.ModelBackend",
]
AXES_ENABLED = not DEBUG
AXES_FAILURE_LIMIT = env.whole("MIRIX_LOGIN_FAILURES", default=10, low=1, high=10_000)
AXES_COOLOFF_TIME = timedelta(
    minutes=env.whole("MIRIX_LOGIN_LOCKOUT_MINUTES", default=15, low=1, high=MINUTES_OF_A_YEAR)
)
# Of name and address together: neither can a stranger lock others out, nor a name be tried from one place.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "mirix.api.addresses.site_address"
AXES_LOCKOUT_CALLABLE = "mirix.api.lockout.locked_out"
# Beside `password`, what its rows and its lines in the log leave out.
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "old_password", "new_password1", "new_password2"]
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# What an organization may choose for itself; these hold where it did not (tenants.models.INHERITED).
MIRIX_REVIEW_POLICY = env.choice("MIRIX_REVIEW_POLICY", "required", ("required", "automatic"))
MIRIX_MIN_SUPPORTING_SESSIONS = env.whole("MIRIX_MIN_SUPPORTING_SESSIONS", default=1, low=1, high=100)
MIRIX_FOUR_EYES = env.switch("MIRIX_FOUR_EYES", default=False)
MIRIX_DECIDING_ROLE = env.choice("MIRIX_DECIDING_ROLE", "reviewer", ("reviewer", "administrator"))
MIRIX_CONVERSATION_RETENTION_DAYS = env.whole(
    "MIRIX_CONVERSATION_RETENTION_DAYS", default=30, low=0, high=36_500
)
MIRIX_UNDISTILLED_RETENTION_DAYS = env.whole(
    "MIRIX_UNDISTILLED_RETENTION_DAYS", default=180, low=0, high=36_500
)
MIRIX_RAW_RETENTION_DAYS = env.whole("MIRIX_RAW_RETENTION_DAYS", default=30, low=0, high=36_500)
MIRIX_SEARCH_LOG_RETENTION_DAYS = env.whole("MIRIX_SEARCH_LOG_RETENTION_DAYS", default=30, low=0, high=36_500)
MIRIX_DAILY_TOKEN_BUDGET = env.whole("MIRIX_DAILY_TOKEN_BUDGET", default=0, low=0, high=2_147_483_647)
MIRIX_REDACT_ON_INTAKE = env.switch("MIRIX_REDACT_ON_INTAKE", default=False)

MIRIX_PUBLIC_URL = env.url(
    "MIRIX_PUBLIC_URL", default=f"http://127.0.0.1:{MIRIX_PORT}", schemes=("https", "http")
).rstrip("/")
MIRIX_HSTS_DAYS = env.whole("MIRIX_HSTS_DAYS", default=30, low=0, high=3_650)
_PUBLIC = urlsplit(MIRIX_PUBLIC_URL)
if _PUBLIC.scheme == "https":  # a proxy ends TLS; the server itself speaks plain HTTP
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    CSRF_TRUSTED_ORIGINS = [f"https://{_PUBLIC.netloc}"]  # also where the proxy does not say that it was TLS
    SECURE_HSTS_SECONDS = MIRIX_HSTS_DAYS * 24 * 3_600
    if MIRIX_TRUSTED_PROXIES:
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    # Other hosts of the domain are not ours to speak for (W005, W021); the proxy redirects plain HTTP (W008).
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]

# Notifications, which each organization turns on for itself.
MIRIX_METRICS_TOKEN = env.text("MIRIX_METRICS_TOKEN")
MIRIX_WEBHOOK_ALLOW_PRIVATE = env.switch("MIRIX_WEBHOOK_ALLOW_PRIVATE", default=False)
vars().update(env.mail("EMAIL_URL", default="consolemail://" if DEBUG else "smtp://localhost:25"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("MIRIX_EMAIL_FROM", default="mirix@localhost")

MIRIX_DISTILLER = env.choice("MIRIX_DISTILLER", "auto", ("auto", "llm", "offline"))
MIRIX_PROPOSER = env.choice("MIRIX_PROPOSER", "auto", ("auto", "offline"))
MIRIX_DISTILLER_MAX_CONCURRENCY = env.whole("MIRIX_DISTILLER_MAX_CONCURRENCY", default=4, low=1, high=100)
MIRIX_DISTILLER_MAX_TRANSCRIPT_CHARS = env.whole(
    _either("DISTILLER_MAX_TRANSCRIPT_CHARS"), default=80_000, low=1_000, high=10_000_000
)
MIRIX_DISTILLER_MAX_MESSAGE_CHARS = env.whole(
    _either("DISTILLER_MAX_MESSAGE_CHARS"), default=8_000, low=200, high=10_000_000
)
MIRIX_DISTILLER_MAX_ATTEMPTS = env.whole("MIRIX_DISTILLER_MAX_ATTEMPTS", default=5, low=1, high=100)
MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = env.whole(
    _either("SKILL_TRIGGER_SESSION_THRESHOLD"), default=5, low=0, high=1_000
)
MIRIX_SKILL_TRIGGER_IDLE_HOURS = env.whole("MIRIX_SKILL_TRIGGER_IDLE_HOURS", default=24, low=0, high=8_760)
MIRIX_SESSION_IDLE_MINUTES = env.whole(
    "MIRIX_SESSION_IDLE_MINUTES", default=30, low=0, high=MINUTES_OF_A_YEAR
)
MIRIX_SKILL_EDIT_BUDGET_B0 = env.number(_either("SKILL_EDIT_BUDGET_B0"), default=1.0, low=0, high=1_000)
MIRIX_SKILL_EDIT_BUDGET_ALPHA_FAIL = env.number(
    _either("SKILL_EDIT_BUDGET_ALPHA_FAIL"), default=1.0, low=0, high=1_000
)
MIRIX_SKILL_EDIT_BUDGET_ALPHA_SUCC = env.number(
    _either("SKILL_EDIT_BUDGET_ALPHA_SUCC"), default=0.5, low=0, high=1_000
)
MIRIX_SKILL_EDIT_BUDGET_MIN = env.whole(_either("SKILL_EDIT_BUDGET_MIN"), default=0, low=0, high=1_000)
MIRIX_SKILL_EDIT_BUDGET_MAX = env.whole(_either("SKILL_EDIT_BUDGET_MAX"), default=6, low=0, high=1_000)
if MIRIX_SKILL_EDIT_BUDGET_MIN > MIRIX_SKILL_EDIT_BUDGET_MAX:
    raise env.refuse(
        _either("SKILL_EDIT_BUDGET_MIN"),
        f"no more than the {MIRIX_SKILL_EDIT_BUDGET_MAX} of SKILL_EDIT_BUDGET_MAX",
        shown=str(MIRIX_SKILL_EDIT_BUDGET_MIN),
    )
MIRIX_SKILL_MAX_EDIT_CHAR_DELTA = env.whole(
    _either("SKILL_MAX_EDIT_CHAR_DELTA"), default=800, low=1, high=1_000_000
)
MIRIX_SKILL_NEAR_COSINE = env.number("MIRIX_SKILL_NEAR_COSINE", default=0.92, low=0.5, high=1)
MIRIX_SKILL_EDIT_MAJOR_RATIO = env.number(_either("SKILL_EDIT_MAJOR_RATIO"), default=0.4, low=0, high=1)
MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS = env.whole(
    _either("SKILL_MAX_INSTRUCTIONS_CHARS"), default=12_000, low=1, high=65_536
)
MIRIX_SKILL_SEARCH_METHOD = env.choice(
    "MIRIX_SKILL_SEARCH_METHOD", "hybrid", ("hybrid", "bm25", "embedding", "string_match")
)
MIRIX_SKILL_HYBRID_RRF_K = env.whole("MIRIX_SKILL_HYBRID_RRF_K", default=15, low=0, high=10_000)
# Of the lists `all`, `name_description` and `semantic`; see skills.search.fusion for how far each is trusted.
MIRIX_SKILL_HYBRID_WEIGHTS = env.numbers(
    "MIRIX_SKILL_HYBRID_WEIGHTS", default=[1.0, 1.0, 1.0], low=0, high=1_000
)

# The model that distils; without its name none is ever asked, whatever keys lie about (mirix.llm.chat).
MIRIX_LLM_MODEL = env.text("MIRIX_LLM_MODEL")
MIRIX_LLM_BASE_URL = env.url("MIRIX_LLM_BASE_URL", default="", schemes=("https", "http"))
# OpenAI's key is for OpenAI: it is not shown to a server that has an address of its own here.
MIRIX_LLM_API_KEY = env.text("MIRIX_LLM_API_KEY") or (
    "" if MIRIX_LLM_BASE_URL else env.text("OPENAI_API_KEY")
)
MIRIX_LLM_TIMEOUT_SECONDS = env.number("MIRIX_LLM_TIMEOUT_SECONDS", default=120.0, low=0.01, high=3600)
MIRIX_LLM_MAX_RETRIES = env.whole("MIRIX_LLM_MAX_RETRIES", default=2, low=0, high=10)
if len(MIRIX_LLM_MODEL) > 128:
    raise env.refuse("MIRIX_LLM_MODEL", "a name of at most 128 characters", shown=MIRIX_LLM_MODEL)

# Vectors for search; without a model it works by words alone (mirix.llm.embeddings).
MIRIX_EMBEDDING_MODEL = env.text("MIRIX_EMBEDDING_MODEL")
MIRIX_EMBEDDING_BASE_URL = env.url("MIRIX_EMBEDDING_BASE_URL", default="", schemes=("https", "http"))
# OpenAI's key is for OpenAI: it is not shown to a server that has an address of its own here.
MIRIX_EMBEDDING_API_KEY = env.text("MIRIX_EMBEDDING_API_KEY") or (
    "" if MIRIX_EMBEDDING_BASE_URL else env.text("OPENAI_API_KEY")
)
MIRIX_EMBEDDING_TIMEOUT_SECONDS = env.number(
    "MIRIX_EMBEDDING_TIMEOUT_SECONDS", default=2.0, low=0.01, high=60
)
MIRIX_EMBEDDING_QUERY_PREFIX = env.verbatim("MIRIX_EMBEDDING_QUERY_PREFIX")
MIRIX_EMBEDDING_DOCUMENT_PREFIX = env.verbatim("MIRIX_EMBEDDING_DOCUMENT_PREFIX")
MIRIX_EMBEDDING_QUERY_INPUT_TYPE = env.text("MIRIX_EMBEDDING_QUERY_INPUT_TYPE")
MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE = env.text("MIRIX_EMBEDDING_DOCUMENT_INPUT_TYPE")
if len(MIRIX_EMBEDDING_MODEL) > 200:
    raise env.refuse("MIRIX_EMBEDDING_MODEL", "a name of at most 200 characters", shown=MIRIX_EMBEDDING_MODEL)

MIRIX_WORKER_STALLED_SECONDS = env.whole("MIRIX_WORKER_STALLED_SECONDS", default=60, low=1, high=86_400)

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
    "DEFAULT_SCHEMA_CLASS": "mirix.api.schema.DescribedErrors",
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
        "ExperienceStatusEnum": "skills.models.ExperienceStatus",
    },
}

DEFAULT_EXCEPTION_REPORTER = "mirix.reports.SecretReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "mirix.reports.SecretFilter"

_LOG_LEVEL = env.choice("MIRIX_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
MIRIX_LOG_FORMAT = env.choice("MIRIX_LOG_FORMAT", "text", FORMATTERS)
MIRIX_LOG_REQUESTS = env.switch("MIRIX_LOG_REQUESTS", default=MIRIX_LOG_FORMAT == "json")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": FORMATTERS[MIRIX_LOG_FORMAT], "format": LINE}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    # What others say in detail quotes what is sent, the client of models for one.
    "root": {"handlers": ["stderr"], "level": "INFO" if _LOG_LEVEL == "DEBUG" else _LOG_LEVEL},
    "loggers": {name: {"level": _LOG_LEVEL} for name in ("mirix", "conversations", "skills")}
    | {name: {"level": "WARNING"} for name in ("procrastinate", "httpx2")},
}
