// The receiver of request metrics, with dependencies of its own: an update of the operator's dependencies does not change
// its image, and so restarts no Pods.
module github.com/example/nginx-operator/cmd/nginx-request-metrics

go 1.26.3

// Images are built with this version.
toolchain go1.26.8

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/prometheus/procfs v0.22.0
	golang.org/x/net v0.60.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
