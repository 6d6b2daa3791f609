# Everything that is done with this project; `make help` lists it.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
export PATH := $(CURDIR)/bin:$(PATH)
VERSION := $(shell cat VERSION)

# Which cluster; only this and hack/release tell the two apart. The default, local, is the one that test/cluster starts on this machine. It
# finds every image under its real name. An external one is that of KUBECONFIG. Images go to IMAGE_REGISTRY (for example quay.io/me), and
# manifests, bundle and catalog are used as copies in dist/external that name the images there.
CLUSTER ?= local
ifeq ($(CLUSTER),local)
  DELIVERY := .
  IN_CLUSTER := bin/cluster exec --
  # The local registry starts with the cluster.
  REGISTRY_NEEDS := cluster-up
else ifeq ($(CLUSTER),external)
  DELIVERY := dist/external
else
  $(error CLUSTER is local or external, not '$(CLUSTER)')
endif
# What an external cluster gets names images by tag, or by digest, as what is published does. A digest is known when the image is pushed:
# the operator's before the bundle, the bundle's before the catalog.
USE_IMAGE_DIGESTS ?= false
ifeq ($(USE_IMAGE_DIGESTS),true)
dist/external: operator-image
catalog-image: bundle-image bin/opm
endif
# Releases and their images. With exec it tells the programs under test/ of them.
RELEASE = CLUSTER=$(CLUSTER) USE_IMAGE_DIGESTS=$(USE_IMAGE_DIGESTS) bin/release

##@ Start here

help: ## List the targets.
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nCLUSTER=external with KUBECONFIG and IMAGE_REGISTRY uses a cluster of your own instead of the local one.\n'
	@printf 'USE_IMAGE_DIGESTS=true names images by digest there.\n'

demo: bin/demo bin/cluster bin/release ## From nothing to a served page: cluster, OLM, operator, NGINX.
	$(RELEASE) exec bin/demo
demo-upgrade: bin/demo bin/cluster bin/release ## Walk the upgrade graph from the first release to this one, with clients that count.
	$(RELEASE) exec bin/demo upgrade

check: ## Everything that has to pass: verify, test, e2e, and where the time goes. With CI=true the cluster is stopped at the end.
	@+go run ./test/harness/gate $(patsubst %,-report dist/%.json,$(TESTED) e2e) \
	  $(if $(filter true-local,$(CI)-$(CLUSTER)),-logs .cluster/logs -finally cluster-down) \
	  tools verify test-unfuzzed 'test-fuzz&' cluster-olm e2e-images e2e-tests

##@ Code

generate: bin/controller-gen bin/crd-ref-docs ## Deep copies, the API reference and the table of reasons, from api/.
	controller-gen object paths=./api/... paths=./examples/...
	crd-ref-docs --log-level=ERROR --config=hack/crd-ref-docs.yaml --source-path=api --renderer=markdown --output-path=docs/reference/api.md
	go run ./hack/reasons > docs/reference/reasons.md

NAME_IMAGES := config/manager/kustomization.yaml examples/config/manager/kustomization.yaml config/scorecard/config.yaml config/olm-v1/catalog.yaml
manifests: bin/controller-gen ## CRD and RBAC, from api/ and controllers/.
	controller-gen crd rbac:roleName=manager-role webhook paths=./{api,controllers,internal/guard,internal/webhook}/... \
	  output:crd:dir=config/crd/bases output:rbac:dir=config/rbac output:webhook:dir=config/webhook
	controller-gen crd rbac:roleName=manager-role webhook paths=./examples/... \
	  output:crd:dir=examples/config/crd output:rbac:dir=examples/config/rbac output:webhook:dir=examples/config/webhook
	sed -i.bak -e 's/newTag: .*/newTag: v$(VERSION)/' -e 's/\(nginx-operator-\(scorecard\|catalog\)\):.*/\1:v$(VERSION)/' $(NAME_IMAGES)
	rm $(NAME_IMAGES:%=%.bak)

# A copy of the tree's content, as the name of a git tree: tracked or not, committed or not, all but what is ignored.
SNAPSHOT = index=$$(mktemp -u) && GIT_INDEX_FILE=$$index git add -A && GIT_INDEX_FILE=$$index git write-tree && rm -f $$index

# Programs of this repository whose dependencies the operator's module is not to have.
MODULES = hack/oci hack/picture

# The linter keeps what it found under the paths of the clone in which it found it, so each clone has a cache of its own.
verify: bin/golangci-lint bin/operator-sdk bin/opm ## Generated files are up to date, lint and validation find nothing.
	@before=$$($(SNAPSHOT)); $(MAKE) generate catalog; after=$$($(SNAPSHOT)); \
	git --no-pager diff --exit-code $$before $$after || { \
	  echo "Generated files were not up to date (the difference is above). They are now: commit them."; exit 1; }
	go mod tidy -diff
	go vet -tags=bench,soak ./...
	GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache golangci-lint run
	@for module in $(MODULES); do \
	  (set -x; cd $$module; go mod tidy -diff; go vet ./...; GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache golangci-lint run); done
	$(MAKE) validate compatible

# Tests on API servers build the programs that they run with the race detector, which needs a C compiler; in themselves, which poll most of
# the time, it would find nothing and cost a third of the processors' time. They are told where the programs of an API server are, and where
# the logs of managers go after a failure.
ON_API_SERVERS = ./test/integration/... ./examples/test/integration
ON_API_SERVER  = KUBEBUILDER_ASSETS=$(CURDIR)/bin TEST_LOGS=$(CURDIR)/dist/test-logs
API_SERVER     = bin/kube-apiserver bin/kube-controller-manager bin/etcd bin/kubectl bin/controller-gen
GOTESTSUM      = gotestsum --format=pkgname-and-test-fails --hide-summary=skipped

# Unit tests that keep a processor busy for minutes and ask no clock: `make check` runs them beside the end-to-end tests, which wait most of
# the time. However long they are kept waiting, they fail no other way.
FUZZED = ./internal/conversion ./internal/webhook
TESTED = integration unit fleet modules fuzz

test: ## Unit and integration tests; the latter on a real API server.
test-unfuzzed: TESTED = integration unit fleet modules
test test-unfuzzed: $(API_SERVER) bin/gotestsum bin/promtool bin/prometheus
	@rm -rf dist/test-logs && mkdir -p dist
	@$(MAKE) --jobs=2 --keep-going $(TESTED:%=test-%)
	@for tests in $(TESTED); do gotestsum tool slowest --threshold=10s --jsonfile=dist/$$tests.json; done
UNIT = $(GOTESTSUM) --jsonfile=dist/$(@:test-%=%).json -- $(if $(filter 1,$(shell go env CGO_ENABLED)),-race) -timeout=25m
test-unit:
	$(UNIT) $$(go list ./... | grep -vxF -e "$$(go list $(ON_API_SERVERS) $(FUZZED) ./test/e2e)")
test-fuzz:
	$(UNIT) $(FUZZED)
test-modules:
	@: > dist/modules.json; for module in $(MODULES); do \
	  (set -x; cd $$module; $(GOTESTSUM) --jsonfile=$(CURDIR)/dist/module.json -- ./...); cat dist/module.json >> dist/modules.json; done
# API servers that collect their garbage a third as often take less of the processors. Tests of a fleet stop the operator, so no other test can
# run beside them, and wait most of the time: they have an API server of their own.
INTEGRATION = GOGC=300 $(ON_API_SERVER) $(GOTESTSUM) --jsonfile=dist/$(@:test-%=%).json -- -timeout=25m
test-integration:
	$(INTEGRATION) -p=3 -skip='^TestFleet' $(ON_API_SERVERS)
test-fleet:
	$(INTEGRATION) -run='^TestFleet' ./test/integration

e2e: cluster-olm e2e-images e2e-tests ## End-to-end tests on the cluster: OLM, run bundle, Subscription, scorecard.
e2e-images: images release-images examples-image
e2e-tests: bin/cluster bin/release bin/oci bin/kubectl-nginx bin/operator-sdk bin/kubectl bin/gotestsum bin/prometheus bin/controller-gen
	mkdir -p dist && go test -c -o bin/e2e.test ./test/e2e
	$(RELEASE) exec gotestsum --format=standard-verbose --raw-command --jsonfile=dist/e2e.json -- \
	  $(IN_CLUSTER) go tool test2json -t -p test/e2e bin/e2e.test -test.v=test2json -test.timeout=$(E2E_TIMEOUT)
	@gotestsum tool slowest --threshold=20s --jsonfile=dist/e2e.json
E2E_TIMEOUT = 45m
e2e-full: export E2E_FULL = true
e2e-full: E2E_TIMEOUT = 2h
e2e-full: start-arm64 e2e ## The same, and what is only long: every other walk of the upgrade graph, a thousand objects, a mirror, arm64.

e2e-olm-v1: cluster-olm-v1 e2e-images ## The same bundle and catalog through OLM v1, on a cluster without OLM v0.
	go test -c -o bin/e2e.test ./test/e2e
	E2E_OLM=v1 $(RELEASE) exec $(IN_CLUSTER) bin/e2e.test -test.v -test.run='TestOLMv1$$' -test.timeout=$(E2E_TIMEOUT)

# Debian has the emulator in a package, of which this one program is unpacked and nothing is installed.
EMULATED_BY := qemu-user-static
EMULATOR := dist/qemu/usr/bin/qemu-aarch64-static
start-arm64: $(EMULATOR) bin/release ## Build the operator for arm64, and start it under an emulator of that processor.
	CLUSTER=local PLATFORMS=linux/arm64 bin/release build
	[[ "$$($(EMULATOR) dist/linux_arm64/manager --version)" == $(VERSION) ]]
	$(EMULATOR) dist/linux_arm64/manager --help 2>&1 | grep -e --nginx-image
$(EMULATOR):
	mkdir -p dist/qemu
	cd dist/qemu && { apt-get download -qq $(EMULATED_BY) || { apt-get update -qq && apt-get download -qq $(EMULATED_BY); }; }
	cd dist/qemu && dpkg-deb --fsys-tarfile $(EMULATED_BY)_*.deb | tar -x ./usr/bin/$(@F) && rm $(EMULATED_BY)_*.deb

picture: cluster-olm images bin/picture bin/prometheus bin/controller-gen bin/kubectl-nginx bin/kubectl ## Draw the picture in the documentation.
	go test -c -o bin/e2e.test ./test/e2e
	E2E_PICTURE=$(CURDIR)/docs/pictures/instances.svg $(RELEASE) exec $(IN_CLUSTER) bin/e2e.test \
	  -test.run='TestSubscription/monitoring_of_instances$$' -test.timeout=15m

bench: $(API_SERVER) ## Measure the operator: requests, memory, time for many objects.
	go test -tags=bench -v -count=1 -p=1 -run=TestCosts ./internal/...
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=60m -skip=OnCluster ./test/bench
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=15m -run=TestTenThousandPods ./examples/test/integration
bench-cluster: deploy ## Measure what an object costs on the local cluster, where all controllers run.
	$(IN_CLUSTER) go test -tags=bench -v -count=1 -timeout=30m -run=OnCluster ./test/bench
soak: bin/kube-apiserver bin/etcd bin/kubectl ## Let the operator run for hours and watch what grows.
	$(ON_API_SERVER) go test -tags=soak -v -count=1 -timeout=24h -run=Soak ./test/bench

##@ Delivery

build: bin/release ## The operator's binary, static, for each of PLATFORMS.
	$(RELEASE) build
kubectl-nginx: bin/release ## The plugin for kubectl, static, for Linux and macOS, with its krew manifest in dist/kubectl-nginx.
	$(RELEASE) plugin

# OLM makes the Service of the webhooks itself, under another name, so that of config/webhook does not go along. operator-sdk keeps no
# createdAt: it writes the current time. The base's is put back, so that the same input gives the same bundle. The default channel is for
# whoever names none: what has proven itself.
CSV_BASE := config/manifests/bases/nginx-operator.clusterserviceversion.yaml
CSV      := bundle/manifests/nginx-operator.clusterserviceversion.yaml
bundle: manifests bin/kubectl bin/operator-sdk ## The release's bundle, from config/manifests.
	operator-sdk generate kustomize manifests --quiet
	rm -rf bundle
	kubectl kustomize config/manifests | sed "s|@ICON@|$$(base64 < config/manifests/icon.svg | tr -d '\n')|" | \
	  operator-sdk generate bundle --quiet --version=$(VERSION) --channels=alpha --default-channel=stable
	rm bundle/manifests/nginx-operator-webhook-service_v1_service.yaml
	sed -i.bak "s/^\( *createdAt: \).*/\1$$(sed -n 's/^ *createdAt: //p' $(CSV_BASE))/" $(CSV) && rm $(CSV).bak
catalog: bundle bin/opm bin/release ## The file-based catalog: this release's bundle and the upgrade graph.
	$(RELEASE) catalog

# Every optional validator that community-operators runs: the suite has operatorhubv2, capabilities, categories, alpha-deprecated-apis,
# good-practices and multiarch. community reads the labels of the Dockerfile, and warns in any case that it is deprecated itself.
validate: bin/operator-sdk bin/opm ## Validate bundle and catalog as community-operators does; a warning is a failure.
	@for validators in suite=operatorframework name=community; do \
	  operator-sdk bundle validate bundle --select-optional=$$validators --optional-values=index-path=bundle.Dockerfile 2>&1 || exit; \
	done | awk '/Community Operator bundle validator is deprecated/ { next } { print } /level=warning/ { warned = 1 } END { exit warned }'
	opm validate catalog

CRD := bundle/manifests/operator.example.com_nginxoperators.yaml
compatible: bin/crdify bin/release ## Compare the API with that of the release before; a change that breaks clients is a failure.
	previous=$$($(RELEASE) tree previous); crdify --config=hack/crdify.yaml file://$(CURDIR)/$$previous/$(CRD) file://$(CURDIR)/$(CRD)

RELEASE_IMAGES := operator-image bundle-image catalog-image scorecard-image
images: $(RELEASE_IMAGES) ## Build all images of this release and push them to the cluster's registry, with SBOM and provenance.
bundle-image catalog-image: $(DELIVERY)
$(RELEASE_IMAGES) examples-image: %-image: bin/release bin/oci $(REGISTRY_NEEDS)
	$(RELEASE) image $*
list-images: bin/release bin/oci ## Print the images that a cluster pulls for this release.
	@$(RELEASE) list-images

release-images: older-images next-images ## Build the images of the releases before and after, for upgrade tests.
next-images: operator-image dist/next
older-images next-images: bin/release $(REGISTRY_NEEDS)
	$(RELEASE) $@

dist/next: bin/opm $(DELIVERY)
dist/next dist/external: dist/%: bin/release bin/oci FORCE
	$(RELEASE) $*
dist/releases/v%: bin/release FORCE
	$(RELEASE) tree $*

##@ Cluster

# Where the API server reaches an operator that runs here: on the local cluster they are in one network.
WEBHOOK_URL ?= https://127.0.0.1:9443
run: bin/kubectl cluster-up ## Run the operator on this machine against the cluster, which reaches it at WEBHOOK_URL.
	go build -ldflags='-X main.version=$(VERSION)' -o bin/manager .
	$(IN_CLUSTER) kubectl apply --server-side -f config/crd/bases
	$(IN_CLUSTER) bin/manager --leader-elect=false --metrics-bind-address=0 --operator-namespace=default --webhook-url=$(WEBHOOK_URL) \
	  --nginx-image=$$(sed -n '/RELATED_IMAGE_NGINX$$/{n;s/ *value: //p;}' config/manager/manager.yaml) \
	  --storage-migration-manifest=config/storagemigration/storageversionmigration.yaml

deploy: bin/kubectl cluster-up operator-image $(DELIVERY) ## Deploy the operator without OLM.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/config/default
	$(IN_CLUSTER) kubectl -n nginx-operator-system rollout status --timeout=2m deployment/nginx-operator-controller-manager
undeploy: bin/kubectl ## Take away what deploy made. The API goes too, and with it every NginxOperator object.
	@CONFIRM=$(CONFIRM) $(IN_CLUSTER) hack/undeploy operator

examples-deploy: bin/kubectl cluster-up examples-image $(DELIVERY) ## Deploy the four examples, beside the operator or without it.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/examples/config
	$(IN_CLUSTER) kubectl -n nginx-operator-examples-system rollout status --timeout=2m deployment/nginx-operator-examples-controller-manager
examples-demo: examples-deploy bin/examples-demo ## Walk through the four examples, as their READMEs do.
	$(IN_CLUSTER) bin/examples-demo
examples-undeploy: bin/kubectl ## Take away what examples-deploy made. The APIs go too, and with them every object of theirs.
	@CONFIRM=$(CONFIRM) $(IN_CLUSTER) hack/undeploy examples

ifeq ($(CLUSTER),local)
cluster-up: bin/cluster ## Start the local cluster.
	bin/cluster up
cluster-olm: bin/cluster ## Start the local cluster with OLM.
	bin/cluster olm
cluster-olm-v1: bin/cluster ## Start the local cluster with OLM v1 and cert-manager.
	bin/cluster olm-v1
cluster-down: bin/cluster ## Stop the local cluster; nothing is left behind.
	bin/cluster down
else
cluster-up: bin/kubectl
	@kubectl get --raw=/readyz >/dev/null || { \
	  echo "CLUSTER=external: the cluster of KUBECONFIG=$${KUBECONFIG:-~/.kube/config} does not answer"; exit 1; }
cluster-olm: cluster-up
	@kubectl get crd subscriptions.operators.coreos.com >/dev/null || { \
	  echo "CLUSTER=external: the cluster has no OLM; 'operator-sdk olm install' installs it"; exit 1; }
cluster-olm-v1: cluster-up
	@kubectl get crd clusterextensions.olm.operatorframework.io certificates.cert-manager.io >/dev/null || { \
	  echo "CLUSTER=external: the cluster has no OLM v1, or no cert-manager"; exit 1; }
cluster-down:
	@echo "CLUSTER=external: the cluster is yours and is left alone"
endif

cluster-exec: export COMMAND := $(value CMD)
cluster-exec: bin/cluster ## Run CMD='...' where the cluster can be reached.
	@[[ -n "$$COMMAND" ]] || { echo "say what to run: make cluster-exec CMD='kubectl get nodes'"; exit 1; }
	@$(IN_CLUSTER) bash -c "$$COMMAND"

clean: cluster-down ## Stop the local cluster and remove everything that was built.
	rm -rf bin dist

# Programs of this repository. Go knows best what has changed, so it is always asked.
bin/cluster bin/demo bin/release bin/examples-demo bin/kubectl-nginx: FORCE
	@go build -o $@ ./$(wildcard cmd/$(@F) test/$(@F) hack/$(@F) $(@F:examples-%=examples/test/%))

# Those that are modules of their own.
bin/oci bin/picture: FORCE
	@go build -C hack/$(@F) -o $(CURDIR)/$@ .

# Tools in the versions that hack/tools pins. bin/cluster knows how each is built, and whether it is up to date.
TOOLS := controller-gen crd-ref-docs crdify etcd golangci-lint gotestsum kube-apiserver kube-controller-manager kubectl operator-sdk opm \
  prometheus promtool
$(TOOLS:%=bin/%): bin/cluster FORCE
	@bin/cluster build $(@F)
tools: bin/cluster ## Build every tool that the tests and the local cluster need.
	bin/cluster build $(if $(filter external,$(CLUSTER)),$(TOOLS))

# Every target without a slash is no file.
.PHONY: FORCE $(RELEASE_IMAGES) examples-image $(shell sed -n 's/^\([a-z][a-z0-9 -]*\):.*/\1/p' Makefile)
