# The file-based catalog as an image that a CatalogSource names. The cache is filled here and not in the cluster, so that
# the catalog answers as soon as its Pod starts. It is the same on every architecture, so only the builder's own runs opm.
ARG BUILDPLATFORM
FROM --platform=$BUILDPLATFORM quay.io/operator-framework/opm:v1.65.0 AS cache
COPY catalog /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

FROM quay.io/operator-framework/opm:v1.65.0
COPY --from=cache /configs /configs
COPY --from=cache /tmp/cache /tmp/cache
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
LABEL operators.operatorframework.io.index.configs.v1=/configs
