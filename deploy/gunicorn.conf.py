"""How gunicorn serves mirix, for `serve` and deployments alike; `--bind` and others may be given besides."""

import os

wsgi_app = "mirix.wsgi"
# An empty variable is the default, as everywhere. (An empty WEB_CONCURRENCY gunicorn itself refuses.)
bind = f"0.0.0.0:{os.environ.get('MIRIX_PORT') or '8531'}"
workers = int(os.environ.get("WEB_CONCURRENCY", "1"))
threads = 8
worker_class = "mirix.heads.Worker"
logger_class = "mirix.refusals.Log"
loglevel = "warning"
graceful_timeout = 10
keepalive = 5  # also how long a connection may say nothing before its head is whole
# The control socket would lie in the home folder, and be shared by all installations of a user.
control_socket_disable = True
# No header says under which path we are, nor who has logged in.
forwarder_headers = ""
