# Everything that is done with this project; `make help` lists it.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VERSION := $(shell cat VERSION)
export PATH := $(CURDIR)/bin:$(PATH)

# Which cluster. This is the only place that tells the two apart:
#
#   local     (default) the one that test/cluster builds and starts on this machine. It finds every image under its real
#             name, so manifests, bundle and catalog are used as they are.
#   external  the one that KUBECONFIG names. Images go to IMAGE_REGISTRY (for example quay.io/me), and manifests, bundle
#             and catalog are used as copies in dist/external that name the images there.
CLUSTER ?= local
PUBLISHED_REGISTRY := ghcr.io/example
ifeq ($(CLUSTER),local)
  REGISTRY   := $(PUBLISHED_REGISTRY)
  DELIVERY   := .
  PLATFORMS  := linux/$(shell go env GOARCH)
  IN_CLUSTER := bin/cluster exec --
  # The local registry starts with the cluster.
  REGISTRY_NEEDS := cluster-up
else ifeq ($(CLUSTER),external)
  REGISTRY    = $(or $(IMAGE_REGISTRY),$(error CLUSTER=external needs IMAGE_REGISTRY, a registry that you can push to and the cluster can pull from, for example IMAGE_REGISTRY=quay.io/me))
  DELIVERY   := dist/external
  PLATFORMS  ?= linux/amd64 linux/arm64
  IN_CLUSTER :=
else
  $(error CLUSTER is local or external, not '$(CLUSTER)')
endif

OPERATOR_IMAGE = $(REGISTRY)/nginx-operator:v$(VERSION)
BUNDLE_IMAGE   = $(REGISTRY)/nginx-operator-bundle:v$(VERSION)
CATALOG_IMAGE  = $(REGISTRY)/nginx-operator-catalog:v$(VERSION)
EXAMPLES_IMAGE = $(REGISTRY)/nginx-operator-examples:v$(VERSION)
SCORECARD_IMAGE = $(REGISTRY)/nginx-operator-scorecard:v$(VERSION)
# The image that the operator runs when nothing else is asked for; the manager's manifest is where it is declared.
NGINX_IMAGE    = $(shell sed -n '/RELATED_IMAGE_NGINX/{n;s/ *value: //p;}' config/manager/manager.yaml)
# What the programs under test/ are told.
TEST_ENV = REPO_ROOT=$(CURDIR) VERSION=$(VERSION) CLUSTER=$(CLUSTER) DELIVERY=$(abspath $(DELIVERY)) \
	OPERATOR_IMAGE=$(OPERATOR_IMAGE) BUNDLE_IMAGE=$(BUNDLE_IMAGE) CATALOG_IMAGE=$(CATALOG_IMAGE) \
	FIRST_VERSION=$(FIRST) FIRST_DELIVERY=$(CURDIR)/dist/releases/v$(FIRST) \
	FIRST_CATALOG_IMAGE=$(REGISTRY)/nginx-operator-catalog:v$(FIRST) \
	PREVIOUS_VERSION=$(PREVIOUS) PREVIOUS_DELIVERY=$(CURDIR)/dist/releases/v$(PREVIOUS) \
	PREVIOUS_BUNDLE_IMAGE=$(REGISTRY)/nginx-operator-bundle:v$(PREVIOUS) PREVIOUS_CATALOG_IMAGE=$(REGISTRY)/nginx-operator-catalog:v$(PREVIOUS) \
	NEXT_VERSION=$(NEXT) NEXT_DELIVERY=$(CURDIR)/dist/next NEXT_CATALOG_IMAGE=$(REGISTRY)/nginx-operator-catalog:v$(NEXT)

# The releases that the catalog holds, without the current one, oldest first; the first and the last of them.
OLDER    := $(shell printf '%s\n' $(filter-out $(VERSION),$(patsubst catalog/nginx-operator/bundles/v%.yaml,%,$(wildcard catalog/nginx-operator/bundles/v*.yaml))) | sort -V)
FIRST    := $(firstword $(OLDER))
PREVIOUS := $(lastword $(OLDER))
# The number after this one, which only upgrade tests use: the same code as a release of its own.
NEXT     := $(shell awk -F. '{ print $$1 "." $$2 "." $$3 + 1 }' VERSION)

CHANNELS        := alpha
# For whoever names no channel: what has proven itself.
DEFAULT_CHANNEL := stable
BUNDLE_CRD      := bundle/manifests/operator.example.com_nginxoperators.yaml
BUNDLE_CSV      := bundle/manifests/nginx-operator.clusterserviceversion.yaml
CSV_BASE        := config/manifests/bases/nginx-operator.clusterserviceversion.yaml
PUT_ICON         = sed "s|@ICON@|$$(base64 < config/manifests/icon.svg | tr -d '\n')|"

##@ Start here

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nCLUSTER=external with KUBECONFIG and IMAGE_REGISTRY uses a cluster of your own instead of the local one.\n'

.PHONY: demo
demo: bin/demo bin/cluster ## From nothing to a served page: cluster, OLM, operator, NGINX.
	$(TEST_ENV) bin/demo

.PHONY: demo-upgrade
demo-upgrade: bin/demo bin/cluster ## Walk the upgrade graph from the first release to this one, with clients that count.
	$(TEST_ENV) bin/demo upgrade

.PHONY: check
check: ## Everything that has to pass: verify, test, e2e. With CI=true the cluster is stopped at the end.
	@rc=0; { $(MAKE) verify && $(MAKE) test && $(MAKE) e2e; } || rc=$$?; \
	if [[ "$${CI:-}" == true && $(CLUSTER) == local ]]; then \
	  if [[ $$rc != 0 && -d .cluster/logs ]]; then \
	    mkdir -p dist && rm -rf dist/cluster-logs && cp -R .cluster/logs dist/cluster-logs; \
	    echo "The logs of the cluster and of its Pods are in $(CURDIR)/dist/cluster-logs"; \
	  fi; \
	  $(MAKE) cluster-down || rc=1; \
	fi; exit $$rc

##@ Code

.PHONY: generate
generate: bin/controller-gen bin/crd-ref-docs ## Deep copies and the API reference, from api/.
	controller-gen object paths=./api/... paths=./examples/...
	mkdir -p docs/reference
	crd-ref-docs --log-level=ERROR --config=hack/crd-ref-docs.yaml --source-path=api --renderer=markdown --output-path=docs/reference/api.md

.PHONY: manifests
manifests: bin/controller-gen ## CRD and RBAC, from api/ and controllers/.
	controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	controller-gen rbac:roleName=manager-role paths=./controllers/... paths=./internal/guard/... output:rbac:dir=config/rbac
	controller-gen webhook paths=./internal/webhook/... paths=./internal/guard/... output:webhook:dir=config/webhook
	controller-gen crd paths=./examples/... output:crd:dir=examples/config/crd
	controller-gen rbac:roleName=manager-role paths=./examples/... output:rbac:dir=examples/config/rbac
	controller-gen webhook paths=./examples/... output:webhook:dir=examples/config/webhook
	for folder in config/manager examples/config/manager; do \
	  sed -i.bak 's/newTag: .*/newTag: v$(VERSION)/' $$folder/kustomization.yaml && rm $$folder/kustomization.yaml.bak; \
	done
	sed -i.bak 's|\(nginx-operator-scorecard\):.*|\1:v$(VERSION)|' config/scorecard/config.yaml && rm config/scorecard/config.yaml.bak

# A copy of the tree's content, as the name of a git tree: tracked or not, committed or not, all but what is ignored.
SNAPSHOT = index=$$(mktemp -u) && GIT_INDEX_FILE=$$index git add -A && GIT_INDEX_FILE=$$index git write-tree && rm -f $$index

# The linter keeps what it found under the paths of the clone in which it found it, so each clone has a cache of its own.
.PHONY: verify
verify: bin/golangci-lint bin/operator-sdk bin/opm ## Generated files are up to date, lint and validation find nothing.
	@before=$$($(SNAPSHOT)); $(MAKE) generate catalog; after=$$($(SNAPSHOT)); \
	git --no-pager diff --exit-code $$before $$after || { \
	  echo "Generated files were not up to date (the difference is above). They are now: commit them."; exit 1; }
	go mod tidy -diff
	go vet -tags=bench,soak ./...
	GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache golangci-lint run
	$(MAKE) validate compatible

.PHONY: test
test: bin/kube-apiserver bin/kube-controller-manager bin/etcd bin/kubectl bin/gotestsum ## Unit and integration tests; the latter on a real API server.
	packages=$$(go list ./... | grep -v /test/e2e); \
	rm -rf $(TEST_LOGS); \
	$(ON_API_SERVER) gotestsum --format=pkgname-and-test-fails --hide-summary=skipped -- $(RACE) -timeout=15m $$packages

# What tests on an API server of their own are told: where its programs are, and where the logs of managers go after a failure.
TEST_LOGS     = $(CURDIR)/dist/test-logs
ON_API_SERVER = KUBEBUILDER_ASSETS=$(CURDIR)/bin TEST_LOGS=$(TEST_LOGS)

# The race detector needs a C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

.PHONY: e2e
e2e: cluster-olm images release-images examples-image bin/operator-sdk bin/kubectl bin/gotestsum ## End-to-end tests on the cluster: OLM, run bundle, Subscription, scorecard.
	go test -c -o bin/e2e.test ./test/e2e
	$(TEST_ENV) gotestsum --format=standard-verbose --raw-command -- \
	  $(IN_CLUSTER) go tool test2json -t -p test/e2e bin/e2e.test -test.v=test2json -test.timeout=45m

.PHONY: bench
bench: bin/kube-apiserver bin/kube-controller-manager bin/etcd bin/kubectl ## Measure the operator: requests, memory, time for many objects.
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=60m ./test/bench
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=15m -run=TestTenThousandPods ./examples/test/integration

.PHONY: soak
soak: bin/kube-apiserver bin/etcd bin/kubectl ## Let the operator run for hours and watch what grows.
	$(ON_API_SERVER) go test -tags=soak -v -count=1 -timeout=24h -run=Soak ./test/bench

##@ Delivery

.PHONY: build
build: $(PLATFORMS:linux/%=dist/linux_%/manager) ## The operator's binary, static, for each of PLATFORMS.

dist/linux_%/scorecard: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -ldflags='-s -w' -o $@ ./test/scorecard

dist/linux_%/examples: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -ldflags='-s -w' -o $@ ./examples

dist/linux_%/manager: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o $@ .

# OLM makes the Service of the webhooks itself, under another name, so that of config/webhook does not go along.
# operator-sdk keeps no createdAt: it writes the current time. The base's is put back, so that the same input gives the
# same bundle.
.PHONY: bundle
bundle: manifests bin/kubectl bin/operator-sdk ## The release's bundle, from config/manifests.
	operator-sdk generate kustomize manifests --quiet
	rm -rf bundle
	kubectl kustomize config/manifests | $(PUT_ICON) | operator-sdk generate bundle --quiet \
	  --version=$(VERSION) --channels=$(CHANNELS) --default-channel=$(DEFAULT_CHANNEL)
	rm bundle/manifests/nginx-operator-webhook-service_v1_service.yaml
	created=$$(sed -n 's/^ *createdAt: //p' $(CSV_BASE)); \
	sed -i.bak "s/^\( *createdAt: \).*/\1$$created/" $(BUNDLE_CSV) && rm $(BUNDLE_CSV).bak

# The graph is rendered from the template, the release's bundle from bundle/; neither needs a registry.
.PHONY: catalog
catalog: bundle bin/opm ## The file-based catalog: this release's bundle and the upgrade graph.
	mkdir -p catalog/nginx-operator/bundles
	opm render bundle --output=yaml --migrate-level=bundle-object-to-csv-metadata \
	  --alpha-image-ref-template='$(PUBLISHED_REGISTRY)/{{.Package}}-bundle:v{{.Version}}' \
	  > catalog/nginx-operator/bundles/v$(VERSION).yaml
	$(PUT_ICON) catalog/template.yaml | opm alpha render-template basic --output=yaml > catalog/nginx-operator/catalog.yaml
	mkdir -p docs/reference
	{ printf '# Upgrade graph\n\nGenerated from `catalog/template.yaml`. [Upgrades](../upgrades.md) says what it means.\n\n```mermaid\n'; \
	  $(PUT_ICON) catalog/template.yaml | opm alpha render-template basic --output=mermaid; echo '```'; } > docs/reference/upgrade-graph.md
	opm validate catalog

.PHONY: validate
validate: bin/operator-sdk bin/opm ## Validate bundle and catalog; a warning is a failure.
	@report=$$(operator-sdk bundle validate bundle --select-optional=suite=operatorframework 2>&1) || { echo "$$report"; exit 1; }; \
	echo "$$report"; [[ "$$report" != *level=warning* ]]
	opm validate catalog

# What clients of the release before could rely on.
.PHONY: compatible
compatible: bin/crdify dist/releases/v$(PREVIOUS) ## Compare the API with that of the release before; a change that breaks clients is a failure.
	crdify --config=hack/crdify.yaml file://$(CURDIR)/dist/releases/v$(PREVIOUS)/$(BUNDLE_CRD) file://$(CURDIR)/$(BUNDLE_CRD)

.PHONY: images operator-image bundle-image catalog-image scorecard-image
images: operator-image bundle-image catalog-image scorecard-image ## Build all images of this release and push them to the cluster's registry.

operator-image: build $(REGISTRY_NEEDS)
	$(call publish,$(OPERATOR_IMAGE),Dockerfile,.)

bundle-image: $(REGISTRY_NEEDS) $(DELIVERY)
	$(call publish,$(BUNDLE_IMAGE),$(DELIVERY)/bundle.Dockerfile,$(DELIVERY))

catalog-image: $(REGISTRY_NEEDS) $(DELIVERY)
	$(call publish,$(CATALOG_IMAGE),$(DELIVERY)/catalog.Dockerfile,$(DELIVERY))

scorecard-image: $(PLATFORMS:linux/%=dist/linux_%/scorecard) $(REGISTRY_NEEDS)
	$(call publish,$(SCORECARD_IMAGE),test/scorecard/Dockerfile,.)

.PHONY: examples-image
examples-image: $(PLATFORMS:linux/%=dist/linux_%/examples) $(REGISTRY_NEEDS)
	$(call publish,$(EXAMPLES_IMAGE),examples/Dockerfile,.)

# Older releases are history: each is built from the last commit that carried its version, with the registry's name
# changed where the cluster has another.
.PHONY: release-images
release-images: $(OLDER:%=release-image-%) next-images ## Build the images of the releases before and after, for upgrade tests.

.PRECIOUS: dist/releases/v%
release-image-%: dist/releases/v% $(REGISTRY_NEEDS)
	for platform in $(PLATFORMS:linux/%=%); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$platform go build -C $< -trimpath -ldflags='-s -w -X main.version=$*' -o dist/linux_$$platform/manager .; \
	done
	$(call publish,$(REGISTRY)/nginx-operator:v$*,$</Dockerfile,$<)
	$(call publish,$(REGISTRY)/nginx-operator-bundle:v$*,$</bundle.Dockerfile,$<)
	$(call publish,$(REGISTRY)/nginx-operator-catalog:v$*,$</catalog.Dockerfile,$<)

# The same code, bundle and channel as a release with the number after this one.
.PHONY: next-images
next-images: operator-image dist/next
	$(call publish,$(REGISTRY)/nginx-operator:v$(NEXT),Dockerfile,.)
	$(call publish,$(REGISTRY)/nginx-operator-bundle:v$(NEXT),dist/next/bundle.Dockerfile,dist/next)
	$(call publish,$(REGISTRY)/nginx-operator-catalog:v$(NEXT),dist/next/catalog.Dockerfile,dist/next)

dist/next: bin/opm $(DELIVERY) FORCE
	@rm -rf $@ && mkdir -p $@
	cp -R $(addprefix $(DELIVERY)/,config bundle bundle.Dockerfile catalog catalog.Dockerfile) $@/
	find $@/config $@/bundle -type f -exec sed -i.bak 's|$(subst .,\.,$(VERSION))|$(NEXT)|g' {} +
	find $@ -name '*.bak' -delete
	opm render $@/bundle --output=yaml --migrate-level=bundle-object-to-csv-metadata \
	  --alpha-image-ref-template='$(REGISTRY)/{{.Package}}-bundle:v{{.Version}}' > $@/catalog/nginx-operator/bundles/v$(NEXT).yaml
	awk '/^- schema: olm.channel/ && ++channels == 2 { \
	  print "  - name: nginx-operator.v$(NEXT)\n    replaces: nginx-operator.v$(VERSION)" } { print }' catalog/template.yaml | \
	  $(PUT_ICON) | opm alpha render-template basic --output=yaml > $@/catalog/nginx-operator/catalog.yaml
	opm validate $@/catalog

dist/releases/v%: FORCE
	@for commit in $$(git rev-list HEAD); do \
	  if [[ $$(git show $$commit:VERSION 2>/dev/null) == $* ]]; then \
	    rm -rf $@ && mkdir -p $@ && git archive $$commit | tar -x -C $@; \
	    if [[ $(REGISTRY) != $(PUBLISHED_REGISTRY) ]]; then \
	      find $@/config $@/bundle $@/catalog -type f -exec sed -i.bak 's|$(PUBLISHED_REGISTRY)/|$(REGISTRY)/|g' {} +; \
	      find $@ -name '*.bak' -delete; \
	    fi; \
	    echo "release $* is commit $$commit"; exit 0; \
	  fi; \
	done; \
	echo "the history of this clone has no commit with VERSION $*: fetch all of it (git fetch --unshallow)"; exit 1

# The copies for an external cluster.
dist/external: FORCE
	rm -rf $@ && mkdir -p $@
	cp -R config bundle bundle.Dockerfile catalog catalog.Dockerfile $@/
	mkdir -p $@/examples && cp -R examples/config $@/examples/
	find $@ -type f -exec sed -i.bak 's|$(PUBLISHED_REGISTRY)/|$(REGISTRY)/|g' {} +
	find $@ -name '*.bak' -delete

# publish,IMAGE,DOCKERFILE,CONTEXT: build an image and push it, for an external cluster as one image for all PLATFORMS.
# Older engines do not know the build arguments that newer ones set by themselves.
ifeq ($(CLUSTER),local)
define publish
bin/cluster image build -t $(1) -f $(2) $(3)
bin/cluster image push $(1)
endef
else
# The first one that works: a client without its daemon is not enough.
ENGINE = $(or $(CONTAINER_TOOL),$(shell for engine in docker podman buildah; do \
	$$engine info >/dev/null 2>&1 && { echo $$engine; break; }; done),$(error \
	no container engine works here. Install and start docker, podman or buildah, or name one with CONTAINER_TOOL))
define publish
@engine=$(ENGINE); echo "$$engine: $(1)"; \
if [[ $$engine == *docker ]]; then \
  for platform in $(PLATFORMS); do \
    arch=$${platform#linux/}; \
    BUILDX_NO_DEFAULT_ATTESTATIONS=1 $$engine build --platform=$$platform --build-arg=TARGETARCH=$$arch -t $(1)-$$arch -f $(2) $(3); \
    $$engine push $(1)-$$arch; \
  done; \
  $$engine manifest rm $(1) >/dev/null 2>&1 || true; \
  $$engine manifest create $(1) $(PLATFORMS:linux/%=$(1)-%); \
  $$engine manifest push --purge $(1); \
else \
  $$engine manifest rm $(1) >/dev/null 2>&1 || true; \
  for platform in $(PLATFORMS); do \
    $$engine build --platform=$$platform --build-arg=TARGETARCH=$${platform#linux/} \
      --build-arg=BUILDPLATFORM=linux/$$(go env GOARCH) --manifest=$(1) -f $(2) $(3); \
  done; \
  $$engine manifest push --all $(1) docker://$(1); \
fi
endef
endif

##@ Cluster

# Where the API server reaches an operator that runs here: on the local cluster they are in one network.
WEBHOOK_URL ?= https://127.0.0.1:9443

.PHONY: run
run: bin/kubectl cluster-up ## Run the operator on this machine against the cluster, which reaches it at WEBHOOK_URL.
	go build -ldflags='-X main.version=$(VERSION)' -o bin/manager .
	$(IN_CLUSTER) kubectl apply --server-side -f config/crd/bases
	$(IN_CLUSTER) bin/manager --leader-elect=false --metrics-bind-address=0 --nginx-image=$(NGINX_IMAGE) \
	  --operator-namespace=default --webhook-url=$(WEBHOOK_URL) \
	  --storage-migration-manifest=config/storagemigration/storageversionmigration.yaml

.PHONY: deploy
deploy: bin/kubectl cluster-up operator-image $(DELIVERY) ## Deploy the operator without OLM.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/config/default
	$(IN_CLUSTER) kubectl -n nginx-operator-system rollout status --timeout=2m deployment/nginx-operator-controller-manager

.PHONY: undeploy
undeploy: bin/kubectl ## Take away what deploy made. The API goes too, and with it every NginxOperator object.
	@objects=$$($(IN_CLUSTER) kubectl get nginxoperators --all-namespaces --ignore-not-found --no-headers 2>/dev/null || true); \
	if [[ -n "$$objects" && "$(CONFIRM)" != yes ]]; then \
	  echo "These servers would be deleted with the API:"; echo "$$objects"; \
	  echo "If that is what you want: make undeploy CONFIRM=yes"; exit 1; \
	fi
	$(IN_CLUSTER) kubectl delete --ignore-not-found -k config/default

.PHONY: examples-deploy
examples-deploy: bin/kubectl cluster-up examples-image $(DELIVERY) ## Deploy the four examples, beside the operator or without it.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/examples/config
	$(IN_CLUSTER) kubectl -n nginx-operator-examples-system rollout status --timeout=2m deployment/nginx-operator-examples-controller-manager

.PHONY: examples-demo
examples-demo: examples-deploy bin/examples-demo ## Walk through the four examples, as their READMEs do.
	$(IN_CLUSTER) bin/examples-demo

# One of the APIs is OpenKruise's by name: where somebody else installed it, it stays.
EXAMPLES_APIS = activities.ego.example.com foos.tutorial.my.domain myapps.example.com sidecarsets.apps.kruise.io

.PHONY: examples-undeploy
examples-undeploy: bin/kubectl ## Take away what examples-deploy made. The APIs go too, and with them every object of theirs.
	@theirs=$$($(IN_CLUSTER) kubectl get crd -l app.kubernetes.io/name!=nginx-operator-examples -o name | \
	  grep -xF "$$(printf 'customresourcedefinition.apiextensions.k8s.io/%s\n' $(EXAMPLES_APIS))" || true); \
	if [[ -n "$$theirs" ]]; then echo "Somebody else installed this, and nothing is taken away:"; echo "$$theirs"; exit 1; fi; \
	objects=$$(for api in $(EXAMPLES_APIS); do \
	  $(IN_CLUSTER) kubectl get $$api --all-namespaces --ignore-not-found -o name 2>/dev/null || true; done); \
	if [[ -n "$$objects" && "$(CONFIRM)" != yes ]]; then \
	  echo "These objects would be deleted with their APIs:"; echo "$$objects"; \
	  echo "If that is what you want: make examples-undeploy CONFIRM=yes"; exit 1; \
	fi; \
	for api in $(EXAMPLES_APIS); do $(IN_CLUSTER) kubectl delete --all --all-namespaces $$api 2>/dev/null || true; done
	$(IN_CLUSTER) kubectl delete --ignore-not-found -k examples/config

.PHONY: cluster-up cluster-olm cluster-down cluster-exec
ifeq ($(CLUSTER),local)
cluster-up: bin/cluster ## Start the local cluster.
	bin/cluster up

cluster-olm: bin/cluster ## Start the local cluster with OLM.
	bin/cluster olm

cluster-down: bin/cluster ## Stop the local cluster; nothing is left behind.
	bin/cluster down
else
cluster-up: bin/kubectl
	@kubectl get --raw=/readyz >/dev/null || { \
	  echo "CLUSTER=external: the cluster of KUBECONFIG=$${KUBECONFIG:-~/.kube/config} does not answer"; exit 1; }

cluster-olm: cluster-up
	@kubectl get crd subscriptions.operators.coreos.com >/dev/null || { \
	  echo "CLUSTER=external: the cluster has no OLM; 'operator-sdk olm install' installs it"; exit 1; }

cluster-down:
	@echo "CLUSTER=external: the cluster is yours and is left alone"
endif

cluster-exec: export COMMAND := $(value CMD)
cluster-exec: bin/cluster ## Run CMD='...' where the cluster can be reached.
	@[[ -n "$$COMMAND" ]] || { echo "say what to run: make cluster-exec CMD='kubectl get nodes'"; exit 1; }
	@$(IN_CLUSTER) bash -c "$$COMMAND"

.PHONY: clean
clean: cluster-down ## Stop the local cluster and remove everything that was built.
	rm -rf bin dist

# Programs of this repository. Go knows best what has changed, so it is always asked.
bin/cluster: FORCE
	@go build -o $@ ./test/cluster

bin/demo: FORCE
	@go build -o $@ ./test/demo

bin/examples-demo: FORCE
	@go build -o $@ ./examples/test/demo

# Tools in the versions that hack/tools pins. bin/cluster knows how each is built, and whether it is up to date.
TOOLS := controller-gen crd-ref-docs crdify etcd golangci-lint gotestsum kube-apiserver kube-controller-manager kubectl operator-sdk opm
$(TOOLS:%=bin/%): bin/cluster FORCE
	@bin/cluster build $(@F)

.PHONY: FORCE
FORCE:
