package debian

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/example/nginx-operator/test/cluster/internal/host"
)

// Suites are the Debian releases whose nginx the operand is tested with, oldest first: bookworm
// (Debian 12) has nginx 1.22, trixie (Debian 13) has 1.26, and sid has the latest package.
var Suites = []string{"bookworm", Stable, Rolling}

// modules are the packages of dynamic modules in the nginx of the suite Stable.
var modules = []string{
	"libnginx-mod-http-js", "libnginx-mod-http-brotli-filter", "libnginx-mod-http-brotli-static", "libnginx-mod-http-geoip2",
}

// Nginx returns the package files of a suite's nginx and its libraries.
func Nginx(ctx context.Context, suite, fallback string, progress *host.Progress) ([]string, error) {
	if !slices.Contains(Suites, suite) {
		return nil, fmt.Errorf("unknown suite %q: one of %s", suite, strings.Join(Suites, ", "))
	}
	names := []string{"nginx"}
	if suite == Stable {
		names = append(names, modules...)
	}
	files, err := Fetch(ctx, Packages{Suite: suite, Names: names, Libraries: true}, fallback, progress)
	if err != nil {
		return nil, host.Unavailable("%w", err)
	}
	return files, nil
}
