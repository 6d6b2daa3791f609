# The file-based catalog as the image of a CatalogSource. The build fills the cache, so that the catalog serves as soon as its
# Pod starts. The cache is the same on every architecture, so opm runs only on the builder's architecture.
#
# The base is pinned by the digest of its index (crane digest quay.io/operator-framework/opm:vX.Y.Z). The tag says which release
# of opm that is. The local cluster builds opm, and has the tags of baseTags in test/cluster/internal/images.
ARG BASE=quay.io/operator-framework/opm:v1.73.0@sha256:e5a6220603fb4504d58c6e3e488386b817e3695c906a62ee0370b5faedc3799a
ARG BUILDPLATFORM
FROM --platform=$BUILDPLATFORM $BASE AS cache
COPY catalog /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

FROM $BASE
COPY --from=cache /configs /configs
COPY --from=cache /tmp/cache /tmp/cache
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
LABEL operators.operatorframework.io.index.configs.v1=/configs
