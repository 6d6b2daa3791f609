# The file-based catalog as the image of a CatalogSource. The build fills the cache, so that the catalog serves as soon as its
# Pod starts. The cache is the same on every architecture, so opm runs only on the builder's architecture.
ARG BUILDPLATFORM
FROM --platform=$BUILDPLATFORM quay.io/operator-framework/opm:v1.73.0 AS cache
COPY catalog /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

FROM quay.io/operator-framework/opm:v1.73.0
COPY --from=cache /configs /configs
COPY --from=cache /tmp/cache /tmp/cache
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
LABEL operators.operatorframework.io.index.configs.v1=/configs
