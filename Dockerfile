# The server and the command line, as a user without rights. `docker build -t omnigraph .`
# What it runs, and how to run it: docs/user/container.md. Tests: tests/surfaces/test_container.py.

FROM python:3.13-slim-bookworm AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir dist .
# Extras of the package; `--build-arg EXTRAS=all` adds Spark, its Java and graph algorithms.
ARG EXTRAS=server,tracing
RUN python -m venv --without-pip /opt/omnigraph \
    && python -m pip --python /opt/omnigraph/bin/python install --no-cache-dir -c constraints.txt \
        "$(echo dist/*.whl)[${EXTRAS}]" \
    && mkdir /data

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="OmniGraph" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /opt/omnigraph /opt/omnigraph
COPY container /opt/omnigraph/container
COPY --from=build --chown=10001:10001 /data /data
ENV PATH=/opt/omnigraph/bin:$PATH \
    HOME=/data \
    PYTHONUNBUFFERED=1 \
    OMNIGRAPH_BIND=0.0.0.0:8080
USER 10001:10001
WORKDIR /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-I", "/opt/omnigraph/container/healthcheck.py"]
ENTRYPOINT ["/opt/omnigraph/container/entrypoint.sh"]
