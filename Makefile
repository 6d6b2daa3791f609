# All commands of this project. `make help` lists them.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
export PATH := $(CURDIR)/bin:$(PATH)
VERSION := $(shell cat VERSION)

# All calls of go use the same flags, so that Go compiles a package once for the product, the tests, and the tools. Only the race detector
# needs cgo. -s removes debug information from programs, so the compiler generates none.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s
# With a memory limit instead of a ratio, the compiler's garbage collection takes a fifth less processor time. A build needs 4 GB of memory.
export GO_BUILD_ENV := GOGC=off GOMEMLIMIT=1GiB

# CLUSTER selects the cluster. local (the default) is the cluster that test/cluster starts on this machine. It has every image under its real
# name. external is the cluster of KUBECONFIG. Its images go to IMAGE_REGISTRY (for example quay.io/me), and dist/external has copies of all
# files that reference images.
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
# Manifests for an external cluster reference images by tag or by digest. A digest is known after the push: the operator's before the bundle.
USE_IMAGE_DIGESTS ?= false
ifeq ($(USE_IMAGE_DIGESTS),true)
dist/external: operator-image request-metrics-image
catalog-image: bundle-image bin/opm
endif
# Builds releases and their images. `exec` sets the environment variables of the programs in test/.
RELEASE = CLUSTER=$(CLUSTER) USE_IMAGE_DIGESTS=$(USE_IMAGE_DIGESTS) bin/release

##@ Start here

help: ## List the targets.
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nTo use your own cluster, set CLUSTER=external, KUBECONFIG, and IMAGE_REGISTRY. USE_IMAGE_DIGESTS=true references images by digest.\n'
	@printf '\nNames of operator-sdk: docker-build, docker-push, docker-buildx (operator-image), bundle-build, bundle-push (bundle-image),\n'
	@printf 'catalog-build, catalog-push (catalog-image), test-e2e (e2e), and install do the same here. Other names: fmt, vet, lint, and\n'
	@printf 'lint-config are part of verify; lint-fix is golangci-lint run --fix; uninstall is undeploy; build-installer is release;\n'
	@printf 'setup-test-e2e and cleanup-test-e2e are cluster-e2e and cluster-down; setup-envtest, envtest, controller-gen, golangci-lint,\n'
	@printf 'operator-sdk, and opm are tools; kustomize is kubectl kustomize.\n'

# bin/demo counts the steps here. The steps after the first one do not look for the cluster again.
FIRST_TIME = $(if $(filter local,$(CLUSTER)), (the first time, this takes $1 on two cores))
WITHOUT_DOWNLOADS = sed -u '/^go: downloading /d'
demo: ## Serve a page from nothing: build and start a cluster, the operator, and NGINX.
	@echo '==> 1 of 5: $(if $(filter local,$(CLUSTER)),Start,Find) the cluster$(call FIRST_TIME,8 minutes)'
	@$(MAKE) -s cluster-up 2>&1 | $(WITHOUT_DOWNLOADS)
	@echo '==> 2 of 5: Build the operator$(call FIRST_TIME,a minute)'
	@$(MAKE) -s REGISTRY_NEEDS= operator-image request-metrics-image bin/demo $(DELIVERY) 2>&1 >/dev/null | $(WITHOUT_DOWNLOADS)
	@$(RELEASE) exec $(IN_CLUSTER) bin/demo
demo-olm: ## Do the same through OLM, with TLS, a change that is rolled back, and a change at v1alpha1.
	@echo '==> 1 of 8: $(if $(filter local,$(CLUSTER)),Start,Find) the cluster$(call FIRST_TIME,8 minutes)'
	@$(MAKE) -s cluster-up bin/demo 2>&1 | $(WITHOUT_DOWNLOADS)
	@$(RELEASE) exec $(IN_CLUSTER) bin/demo olm check
	@echo '==> 2 of 8: $(if $(filter local,$(CLUSTER)),Install,Find) OLM$(call FIRST_TIME,2 minutes)'
	@$(MAKE) -s cluster-olm 2>&1 | $(WITHOUT_DOWNLOADS)
	@echo '==> 3 of 8: Build the operator, the bundle, and the catalog$(call FIRST_TIME,a minute)'
	@$(MAKE) -s REGISTRY_NEEDS= operator-image request-metrics-image bundle-image catalog-image 2>&1 >/dev/null | $(WITHOUT_DOWNLOADS)
	@$(RELEASE) exec $(IN_CLUSTER) bin/demo olm

# Cheap steps come first. DUE has the parts of nightly that check must run, because their inputs changed since their last record.
check: export DUE = $(or $(shell go run ./hack/nightly due),$(error hack/nightly does not say which parts are due))
check: export E2E_PART = gate $(filter examples,$(DUE))
check: ## Run everything that must pass: verify, test, and e2e. Print where the time went. With CI=true, stop the cluster at the end.
	@+go run ./test/harness/gate $(if $(filter true-local,$(CI)-$(CLUSTER)),-logs .cluster/logs -finally cluster-down) \
	  tools verify test-unit test-integration e2e-setup e2e-images e2e-tests

##@ Code

CRD_REF_DOCS = crd-ref-docs --log-level=ERROR --config=hack/crd-ref-docs/config.yaml --templates-dir=hack/crd-ref-docs --renderer=markdown
generate: bin/controller-gen bin/crd-ref-docs ## Generate deep copies, the API reference, and the table of reasons.
	controller-gen object paths=./api/... paths=./examples/...
	$(CRD_REF_DOCS) --source-path=api/v1alpha2 --output-path=docs/reference/api.md
	$(CRD_REF_DOCS) --source-path=api/v1alpha1 --output-path=docs/reference/api-v1alpha1.md
	go run ./hack/reasons > docs/reference/reasons.md
	go run ./hack/nightly merge

RECEIVER_VERSION := $(shell cat cmd/nginx-request-metrics/VERSION)
# The files with the tag of the receiver of request metrics.
NAME_RECEIVER := config/manager/manager.yaml internal/wellknown/wellknown.go docs/guide/operations/settings.md docs/facts.md \
  docs/guide/air-gapped.md
NAME_IMAGES := config/manager/kustomization.yaml examples/config/manager/kustomization.yaml config/scorecard/config.yaml
# The URLs of runbooks lead to the pages of the installed release.
NAME_RUNBOOKS := config/monitoring/prometheusrule.yaml config/monitoring/dashboard.json config/monitoring/dashboard-instances.json \
  assets/manifests/prometheusrule.yaml internal/operand/testdata/fields.txt test/monitoring/testdata/alerts.yaml \
  test/monitoring/testdata/instance-alerts.yaml
manifests: bin/controller-gen ## Generate CRDs, RBAC, and webhook configurations from api/, controllers/, and internal/.
	controller-gen crd rbac:roleName=manager-role webhook paths=./{api,controllers,internal/webhook}/... \
	  output:crd:dir=config/crd/bases output:rbac:dir=config/rbac output:webhook:dir=config/webhook
	controller-gen crd rbac:roleName=manager-role webhook paths=./examples/... \
	  output:crd:dir=examples/config/crd output:rbac:dir=examples/config/rbac output:webhook:dir=examples/config/webhook
	sed -i.bak -e 's/newTag: .*/newTag: v$(VERSION)/' -e 's/\(nginx-operator-scorecard\):.*/\1:v$(VERSION)/' $(NAME_IMAGES)
	sed -i.bak -e 's,blob/[^/]*/docs/runbooks,blob/v$(VERSION)/docs/runbooks,' $(NAME_RUNBOOKS)
	sed -i.bak -e 's,\(/nginx-request-metrics\):v[0-9.]*,\1:v$(RECEIVER_VERSION),' $(NAME_RECEIVER)
	rm $(NAME_IMAGES:%=%.bak) $(NAME_RUNBOOKS:%=%.bak) $(NAME_RECEIVER:%=%.bak)

# Modules of this repository with dependencies of their own.
MODULES = cmd/nginx-request-metrics hack/oci hack/site test/cluster

verify: bin/golangci-lint bin/operator-sdk bin/opm ## Check that generated files are up to date, and that linters and validators find nothing.
	@RACED="$(RACED)" hack/verify $(MODULES)

# Tests on API servers need the programs of the API server, and managers. -count=1: Go does not notice when these programs change.
# GOGC=300: API servers that collect garbage a third as often use less processor time.
ON_API_SERVERS = ./test/integration/... ./examples/test/integration
ON_API_SERVER  = KUBEBUILDER_ASSETS=$(CURDIR)/bin TEST_LOGS=$(CURDIR)/dist/test-logs
OLDEST         = bin/kubernetes-oldest/kube-apiserver
API_SERVER     = bin/kube-apiserver bin/kube-controller-manager bin/etcd bin/kubectl bin/kubectl-nginx bin/controller-gen

# The managers that tests run, without and with the race detector, which needs a C compiler.
TEST_PROGRAMS = bin/test/manager bin/test/examples bin/test/manager-race bin/test/examples-race
$(TEST_PROGRAMS): FORCE
	@$(GO_BUILD_ENV) $(if $(filter %-race,$@),CGO_ENABLED=1) go build $(if $(filter %-race,$@),-race) -ldflags='-s -w -X main.version=integration' -o $@ \
	  ./$(filter examples,$(@F:-race=))

# The race detector runs in unit tests of packages whose code or tests start goroutines or have locks. In the others it has nothing to find,
# and what they do with large texts would take thirty times as long. Packages whose costly tests have the build tag !race run with and without
# it. -vet=off: verify runs the analyzers of go vet in golangci-lint.
RACED = $$(git grep -lE '^[[:space:]]+go |\.Go\(|sync\.(RW)?Mutex' -- '*.go' ':!hack' ':!examples' ':!cmd/nginx-request-metrics' ':!test/'{bench,cluster,e2e,integration} | $(TO_PACKAGES))
COSTLY = $$(git grep -l '^//go:build !race$$' -- '*_test.go' | $(TO_PACKAGES))
TO_PACKAGES = xargs dirname | sort -u | sed 's|^|./|'
GOTESTSUM = gotestsum --format=pkgname-and-test-fails --hide-summary=skipped --jsonfile=dist/$(@:test-%=%).json -- -vet=off -timeout=25m $(TAGS)

test: test-unit test-integration ## Run the unit tests, and the integration tests on a real API server.
test-unit: bin/gotestsum bin/promtool bin/prometheus bin/helm bin/helm4 bin/kubectl ## Run the unit tests.
	@mkdir -p dist
	@$(MAKE) --jobs=2 --keep-going test-pure test-raced test-modules
test-raced:
	CGO_ENABLED=1 $(GOTESTSUM) -race $(RACED)
	cd cmd/nginx-request-metrics && CGO_ENABLED=1 gotestsum --format=pkgname-and-test-fails -- -vet=off -race ./...
test-pure: export E2E_PART = unit
test-pure:
	$(GOTESTSUM) $(COSTLY) $$(go list ./... | grep -vxF -e "$$(go list $(ON_API_SERVERS) $(RACED) ./test/simulation)")
test-modules:
	for module in $(filter-out cmd/nginx-request-metrics,$(MODULES)); do (cd $$module && gotestsum --format=pkgname-and-test-fails -- -vet=off ./...); done

# The processes of the integration tests, each with an API server of its own. Those with the most work start first.
# test/integration/sets_test.go has the sets.
SETS = rest fields alone
INTEGRATION = $(SETS:%=test-%) test-migration test-examples
INTEGRATION_NEEDS = $(API_SERVER) bin/helm bin/helm4 $(TEST_PROGRAMS) bin/gotestsum
# check sets DUE. The seeds of the simulation wait for nothing, so they use the processor time that the others leave.
test-integration: $(INTEGRATION_NEEDS) $(if $(filter apiserver,$(DUE)),$(OLDEST)) ## Run the integration tests.
	@rm -rf dist/test-logs && mkdir -p dist
	@$(MAKE) --jobs=5 --keep-going test-simulation $(if $(filter apiserver,$(DUE)),oldest) $(INTEGRATION)
test-simulation:
	nice -n 19 $(GOTESTSUM) ./test/simulation
$(SETS:%=test-%): test-%:
	GOGC=300 TEST_SET=$* $(ON_API_SERVER) $(GOTESTSUM) -count=1 ./test/integration
test-migration:
	GOGC=300 $(ON_API_SERVER) $(GOTESTSUM) -count=1 ./test/integration/migration ./test/integration/deployments
test-examples:
	GOGC=300 $(ON_API_SERVER) $(GOTESTSUM) -count=1 ./examples/test/integration

# The oldest supported API server, which is minKubeVersion.
test-oldest: $(INTEGRATION_NEEDS) $(OLDEST) ## Run the integration tests that depend on the API server on the oldest supported one.
	@mkdir -p dist
	@$(MAKE) oldest
oldest apiserver-oldest: export TEST_ASSET_KUBE_APISERVER = $(CURDIR)/$(OLDEST)
oldest:
	GOGC=300 TEST_SET=oldest $(ON_API_SERVER) $(GOTESTSUM) -count=1 ./test/integration/...

# Tests that are too long for check. hack/nightly has the parts with their targets, and records the parts that passed.
nightly: tools ## Run all tests that are too long for check, in parts, and record them. PART=NAME runs one part.
	go run ./hack/nightly run $(PART)
weekly: tools ## Run the tests that are too long for nightly, in parts.
	go run ./hack/nightly weekly $(PART)
release-check: ## Fail unless each part of nightly is recorded for this commit.
	@go run ./hack/nightly release-check
VERBOSE = gotestsum --format=standard-verbose --jsonfile=dist/$@.json -- -vet=off -count=1
apiserver-oldest: $(OLDEST)
apiserver-newest: export TAGS = -tags=matrix
apiserver-newest: bin/prometheus-operator bin/promtool
apiserver-oldest apiserver-newest: $(INTEGRATION_NEEDS)
	@mkdir -p dist
	@$(MAKE) --jobs=4 --keep-going $(INTEGRATION)
simulate: bin/gotestsum ## Run the simulation with new seeds for DURATION (default 1h).
	@mkdir -p dist
	$(VERBOSE) -timeout=0 -run='^TestSeeds$$' ./test/simulation -simulate=$(or $(DURATION),1h)
simulate-rows: bin/gotestsum ## Put each known defect back into the code, and check that the simulation finds it.
	@mkdir -p dist
	$(VERBOSE) -timeout=1h -tags=rows -run='^TestSeedsFindEachRow$$' ./test/simulation/rows
simulate-mutants: bin/gotestsum ## Put drawn defects into the core, one at a time, and check that the simulation finds them. SEED draws others.
	@mkdir -p dist
	$(VERBOSE) -timeout=2h -tags=rows -run='^TestSeedsFindDrawnMutants$$' ./test/simulation/rows -seed=$(or $(SEED),1)
# A part of the end-to-end tests on a new cluster. Upgrades do not run on the oldest Kubernetes: API servers before 1.34 reject the CRDs
# of the releases before this one.
nightly-e2e: export CLUSTER_KUBERNETES = $(if $(filter oldest-cluster,$(E2E_PART)),oldest)
nightly-e2e: bin/cluster
	bin/cluster down
	$(MAKE) $(if $(filter olm-v1,$(E2E_PART)),e2e-olm-v1,e2e)
	bin/cluster down
first-command: ## Run the first command of the README in a fresh clone, and the commands that it prints.
	hack/first-command

e2e: e2e-setup e2e-images e2e-tests ## Run the end-to-end tests on the cluster: OLM, run bundle, Subscription, scorecard.
# The parts of test/e2e/parts_test.go that run. Images are built for them only.
E2E_PART ?= gate
in-part = $(if $(filter $1,$(E2E_PART)),$2)
e2e-images: release release-images stranger-image $(call in-part,examples,examples-image) $(call in-part,subscription journeys,nginx-images) \
  $(call in-part,journeys,peer-images)
# Only the part journeys tests the plugin of other platforms.
e2e-images: export PLUGIN_PLATFORMS = $(if $(call in-part,journeys,all),,$(shell go env GOOS)_$(shell go env GOARCH))
# The local cluster starts with the nginx of one of Debian's suites. The part subscription tests that of all of them, and the part
# journeys has recipes with the newest one, and with other programs next to it.
nginx-images peer-images: $(REGISTRY_NEEDS)
nginx-images:
	$(if $(filter local,$(CLUSTER)),bin/cluster nginx bookworm trixie sid)
peer-images:
	$(if $(filter local,$(CLUSTER)),bin/cluster peers)
E2E = bin/e2e.test bin/cluster bin/release bin/oci bin/kubectl-nginx bin/operator-sdk bin/kubectl bin/prometheus bin/controller-gen \
  bin/crd-ref-docs bin/helm bin/helm4
# A cluster that starts leaves processor time for the compiler.
e2e-setup:
	@$(MAKE) --jobs=2 cluster-e2e build $(E2E)
e2e-tests: bin/gotestsum $(E2E)
	mkdir -p dist
	E2E_PART='$(E2E_PART)' $(RELEASE) exec gotestsum --format=standard-verbose --raw-command --jsonfile=dist/e2e.json -- \
	  $(IN_CLUSTER) go tool test2json -t -p test/e2e bin/e2e.test -test.v=test2json $(call in-part,gate,-test.failfast) $(if $(E2E_RUN),-test.run='$(E2E_RUN)') -test.timeout=60m
e2e-olm-v1: ## Test the bundle and the catalog with OLM v1, on a cluster without OLM v0.
	$(MAKE) cluster-olm-v1 e2e-images e2e-tests E2E_PART=olm-v1
start-arm64: bin/release ## Build the operator for arm64, and start it in an emulator.
	hack/start-arm64 $(VERSION)

bench: $(API_SERVER) ## Measure requests, memory, and time for many objects.
	go test -tags=bench -v -count=1 -p=1 -run=TestCosts ./internal/... ./pkg/...
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=60m -skip='OnCluster|^TestHostile$$' ./test/bench
	$(ON_API_SERVER) go test -tags=bench -v -count=1 -timeout=15m -run=TestTenThousandPods ./examples/test/integration
bench-hostile: $(API_SERVER) bin/gotestsum ## Measure the operator's other clients while strangers attack its ports.
	@mkdir -p dist
	$(ON_API_SERVER) $(VERBOSE) -tags=bench -timeout=30m -run='^TestHostile$$' ./test/bench
BENCH_PAGE = $(CURDIR)/docs/performance.md
bench-growth: $(API_SERVER) bin/gotestsum ## Measure processor time and memory up to 10,000 objects, and write the plots of docs/performance.md.
	@mkdir -p dist
	BENCH_PAGE=$(BENCH_PAGE) $(ON_API_SERVER) $(VERBOSE) -tags=bench -timeout=60m -run='^TestGrowth$$' ./test/bench
bench-migration: $(API_SERVER) bin/gotestsum ## Measure the storage migration of 50,000 objects, and write the results to docs/performance.md. BY=operator or control-plane.
	@mkdir -p dist
	BENCH_PAGE=$(BENCH_PAGE) BENCH_OBJECTS=$(or $(BENCH_OBJECTS),50000) $(ON_API_SERVER) \
	  $(VERBOSE) -tags=bench -timeout=4h -run='^TestStorageMigration$$/^$(or $(BY),.*)$$' ./test/bench
bench-cluster: demo-olm bin/kwok ## Measure an object and a request on the local cluster with OLM, and write the tables of docs/performance.md.
	$(if $(filter local,$(CLUSTER)),bin/cluster up exporter)
	BENCH_PAGE=$(BENCH_PAGE) $(IN_CLUSTER) go test -tags=bench -v -count=1 -timeout=60m -run='$(or $(BENCH_RUN),OnCluster)' ./test/bench
soak: bin/kube-apiserver bin/etcd bin/kubectl ## Run the operator for hours, and check that its memory and goroutines do not grow.
	$(ON_API_SERVER) go test -tags=soak -v -count=1 -timeout=24h -run=Soak ./test/bench

##@ Delivery

build: bin/release ## Build the operator's static binary for each of PLATFORMS.
	$(RELEASE) build
kubectl-nginx: bin/release ## Build the kubectl plugin for Linux, macOS, and Windows, with its krew manifest, in dist/kubectl-nginx.
	$(RELEASE) plugin
bundle: manifests bin/kubectl bin/operator-sdk ## Generate the release's bundle from config/manifests.
	hack/bundle $(VERSION)
chart: manifests ## Generate the Helm chart from config/ and hack/chart.
	go run ./hack/chart
catalog: bundle chart bin/opm bin/release ## Generate the file-based catalog: this release's bundle and the upgrade graph.
	$(RELEASE) catalog
validate: bin/operator-sdk bin/opm bin/release ## Validate the bundle and the catalogs like community-operators. A warning is a failure.
	@hack/validate
compatible: bin/crdify bin/crdify-newest bin/release ## Check that OLM v1 accepts the CRD of each upgrade to this release.
	@$(RELEASE) preflight

RELEASE_IMAGES := operator-image bundle-image catalog-image scorecard-image request-metrics-image
images: $(RELEASE_IMAGES) bin/oci ## Build all images of this release and push them to the cluster's registry, with SBOM and provenance.
	$(RELEASE) attest
bundle-image catalog-image: $(DELIVERY)
# A published version is not pushed again.
request-metrics-image: bin/oci
# Names of operator-sdk. An image target builds and pushes.
docker-build docker-push docker-buildx: operator-image
bundle-build bundle-push: bundle-image
catalog-build catalog-push: catalog-image
test-e2e: e2e
$(RELEASE_IMAGES) examples-image stranger-image: %-image: bin/release $(REGISTRY_NEEDS)
	@$(RELEASE) image $*
release: images ## Write all files that users download to dist/release.
	$(RELEASE) files
catalog-latest: bin/release bin/oci $(REGISTRY_NEEDS) ## Move the tag latest of the catalog to this release. Clusters that poll it upgrade.
	$(RELEASE) latest
list-images: bin/release bin/oci ## List the images that a cluster pulls for this release.
	@$(RELEASE) list-images

release-images: older-images next-images ## Build the images of the releases before and after that the tests of E2E_PART install.
next-images: operator-image dist/next
# The part upgrades installs all releases. The journey of an upgrade ends at 0.5.1.
older-images: OLDER = $(if $(call in-part,upgrades,all),,previous published $(call in-part,journeys,0.5.1))
older-images next-images: bin/release $(REGISTRY_NEEDS)
	$(RELEASE) $@ $(OLDER)

dist/next: bin/opm $(DELIVERY)
dist/next dist/external: dist/%: bin/release bin/oci FORCE
	$(RELEASE) $*
dist/releases/v%: bin/release FORCE
	$(RELEASE) tree $*

##@ Site

# The path of the URL under which dist/site is published.
SITE_BASE ?= /
site: bin/site bin/hugo bin/release ## Render docs/ of all releases as a website in dist/site. Needs npm.
	bin/site build -base $(SITE_BASE)
site-check: site ## Open each page of the site in Chromium. Overflow, a dead link, or a missing diagram is a failure.
	go test -C hack/site -tags=site -count=1 -run="TestCheckFindsDefects|TestPictures" .
	bin/site check -base $(SITE_BASE)

pictures: bin/site ## Draw docs/pictures from a running cluster: the dashboards, and the output of kubectl nginx status. Needs npm and Chromium.
	rm -rf dist/pictures
	mkdir -p dist/pictures
	PICTURES=$(CURDIR)/dist/pictures $(MAKE) e2e E2E_RUN='^TestSubscription/^under_load/^(rollback|monitoring)|^TestSubscription/^monitoring'
	bin/site pictures

##@ Cluster

# The URL at which the API server reaches an operator on this machine. The local cluster has the same network.
WEBHOOK_URL ?= https://127.0.0.1:9443
install: bin/kubectl cluster-up ## Install the CRD only.
	$(IN_CLUSTER) kubectl apply --server-side -f config/crd/bases
run: install ## Run the operator on this machine. The cluster calls its webhooks at WEBHOOK_URL.
	$(GO_BUILD_ENV) go build -ldflags='-s -w -X main.version=$(VERSION)' -o bin/manager .
	$(IN_CLUSTER) bin/manager --leader-elect=false --metrics-bind-address=0 --operator-namespace=default --webhook-url=$(WEBHOOK_URL) \
	  --nginx-image=$$(sed -n '/RELATED_IMAGE_NGINX$$/{n;s/ *value: //p;}' config/manager/manager.yaml) \
	  --storage-migration-manifest=config/storagemigration/storageversionmigration.yaml

deploy: bin/kubectl cluster-up operator-image request-metrics-image $(DELIVERY) ## Deploy the operator without OLM.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/config/default
	$(IN_CLUSTER) kubectl -n nginx-operator-system rollout status --timeout=2m deployment/nginx-operator-controller-manager
undeploy: bin/kubectl ## Delete the objects of deploy, with the CRD and all NginxOperators.
	@CONFIRM=$(CONFIRM) $(IN_CLUSTER) hack/undeploy operator

examples-deploy: bin/kubectl cluster-up examples-image $(DELIVERY) ## Deploy the four examples, with or without the operator.
	$(IN_CLUSTER) kubectl apply --server-side -k $(DELIVERY)/examples/config
	$(IN_CLUSTER) kubectl -n nginx-operator-examples-system rollout status --timeout=2m deployment/nginx-operator-examples-controller-manager
examples-demo: examples-deploy bin/examples-demo ## Run the steps in the READMEs of the four examples.
	$(IN_CLUSTER) bin/examples-demo
examples-undeploy: bin/kubectl ## Delete the objects of examples-deploy, with the CRDs and all objects of the examples.
	@CONFIRM=$(CONFIRM) $(IN_CLUSTER) hack/undeploy examples

cluster-up: ## Start the local cluster with what an NGINX instance needs.
cluster-olm: PARTS = olm
cluster-olm: ## Start the local cluster with OLM.
cluster-olm-v1: PARTS = olm-v1
cluster-olm-v1: ## Start the local cluster with OLM v1 and cert-manager.
cluster-e2e: PARTS = olm metrics exporter scorecard
cluster-e2e: ## Start the local cluster with everything that the end-to-end tests need.
cluster-down: ## Stop the local cluster, and remove everything except its programs.
cluster-up cluster-olm cluster-olm-v1 cluster-e2e cluster-down: bin/$(if $(filter local,$(CLUSTER)),cluster,kubectl)
	$(if $(filter local,$(CLUSTER)),bin/cluster,@hack/external) $(if $(filter %-down,$@),down,up $(PARTS))
cluster-exec: export COMMAND := $(value CMD)
cluster-exec: bin/cluster ## Run CMD='...' in the network of the cluster.
	@[[ -n "$$COMMAND" ]] || { echo "CMD is not set. For example, run: make cluster-exec CMD='kubectl get nodes'"; exit 1; }
	@$(IN_CLUSTER) bash -c "$$COMMAND"

clean: cluster-down ## Stop the local cluster, and remove everything that was built.
	rm -rf bin dist

# Programs of this repository. Always call go, because it detects changes. One call builds both programs of the demo.
bin/release bin/demo &: FORCE
	@$(GO_BUILD_ENV) go build -o bin/ ./hack/release ./test/demo
bin/examples-demo bin/kubectl-nginx: FORCE
	@$(GO_BUILD_ENV) go build -o $@ ./$(wildcard cmd/$(@F) test/$(@F) hack/$(@F) $(@F:examples-%=examples/test/%))

# Programs in modules of their own.
bin/oci bin/site bin/cluster: FORCE
	@$(GO_BUILD_ENV) go build -C $(wildcard hack/$(@F) test/$(@F)) -o $(CURDIR)/$@ .
bin/e2e.test: FORCE
	@$(GO_BUILD_ENV) go test -c -o $@ ./test/e2e

# Tools in the versions of hack/tools. bin/cluster builds a tool unless it is up to date.
TOOLS := controller-gen crd-ref-docs crdify crdify-newest etcd golangci-lint gotestsum helm helm4 kube-apiserver kube-controller-manager kubectl \
  operator-sdk opm prometheus promtool
# kwok is for bench-cluster, hugo for the site, and the last two are for parts of nightly.
$(TOOLS:%=bin/%) bin/kwok bin/hugo bin/prometheus-operator $(OLDEST): bin/cluster FORCE
	@bin/cluster build $(@:bin/%=%)
tools: bin/cluster ## Build the tools that most tests need. The local cluster builds its own.
	bin/cluster build $(TOOLS)

# No target without a slash is a file.
.PHONY: FORCE $(RELEASE_IMAGES) examples-image stranger-image $(shell sed -n 's/^\([a-z][a-z0-9 -]*\):.*/\1/p' Makefile)
