# The gateway: `docker build -t segue .`, then `docker run --read-only -v segue:/var/lib/segue -p 8787:8787 -e ... segue`.
# Two stages, so that pip and the sources stay out of the image. The digest is that of all platforms (3.13.15, read 2026-11-18):
# a tag that was moved is another image.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN python -m venv /opt/segue \
    && /opt/segue/bin/pip install --no-cache-dir --no-compile ".[cli,gateway,postgres]" \
    && /opt/segue/bin/pip uninstall --yes pip

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
RUN useradd --system --uid 10001 --home-dir /var/lib/segue --create-home segue
COPY --from=build /opt/segue /opt/segue
COPY deploy/gateway.toml /etc/segue/gateway.toml
# Nothing but the state is written, so the file system can be read-only.
ENV PATH=/opt/segue/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /var/lib/segue
VOLUME /var/lib/segue
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/health', timeout=2)"]
ENTRYPOINT ["segue"]
CMD ["serve", "--config", "/etc/segue/gateway.toml"]
