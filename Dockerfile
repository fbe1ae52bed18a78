# The service and what it trusts, nothing else: one binary, the certificates of public authorities, an ordinary user.
#   docker build -t countersign .
#   docker run --rm -p 8080:8080 -v ./countersign.toml:/etc/countersign/countersign.toml:ro --env-file .env countersign
# In a container `listen` must be "0.0.0.0:8080". /healthz answers without credentials; the image has no client to ask
# it, so let the orchestrator do that.

FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin countersign

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/countersign --create-home --shell /usr/sbin/nologin countersign
COPY --from=build /src/target/release/countersign /usr/local/bin/countersign
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/countersign/
USER 10001
# Paths in the configuration are relative to here: the SQLite file and the signing keys.
WORKDIR /var/lib/countersign
VOLUME /var/lib/countersign
EXPOSE 8080
# SIGTERM: finish or release what is in hand, close, exit 0.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/countersign"]
CMD ["run", "--config", "/etc/countersign/countersign.toml"]
