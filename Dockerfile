# syntax=docker/dockerfile:1

# A point release, so that two builds have the same; --build-arg BASE=debian@sha256:... pins it to the byte.
ARG BASE=debian:12.11-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build pkgconf python3-dev \
        python3-venv libopus-dev libspandsp-dev libspeexdsp-dev libsrtp2-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/trunkline
WORKDIR /src
COPY . .
RUN /opt/trunkline/bin/pip install --no-cache-dir ".[postgres,s3]" \
    && /opt/trunkline/bin/pip uninstall --yes pip setuptools

FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 espeak-ng \
        libopus0 libspandsp2 libspeexdsp1 libsrtp2-1 libssl3 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 trunkline \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/trunkline --create-home --shell /usr/sbin/nologin trunkline
COPY --from=build /opt/trunkline /opt/trunkline
ENV PATH=/opt/trunkline/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TRUNKLINE_DATA_DIR=/var/lib/trunkline \
    TRUNKLINE_LOG_FORMAT=json
# A number, so that a supervisor can see that it is not root.
USER 10001:10001
WORKDIR /var/lib/trunkline
VOLUME /var/lib/trunkline
EXPOSE 8080/tcp 5060/udp 5060/tcp 5061/tcp 20000-29999/udp 31000/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["trunkline", "health"]
CMD ["trunkline", "serve"]
