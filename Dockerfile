# The operator: one static binary from `make build`, and nothing else.
FROM scratch
ARG TARGETARCH
LABEL org.opencontainers.image.title="nginx-operator" \
      org.opencontainers.image.description="Declares NGINX instances as Kubernetes objects, keeps them healthy and reports on them." \
      org.opencontainers.image.source="https://github.com/example/nginx-operator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY dist/linux_${TARGETARCH}/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
