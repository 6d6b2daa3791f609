package manager

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/example/nginx-operator/pkg/serving"
)

// disabled is the address of a port that is not opened.
const disabled = "0"

// addPorts opens the ports of probes and metrics, because the manager's own have no limits.
func (m *Manager) addPorts(ctx context.Context) error {
	ports := []serving.Port{{Name: "probes", Address: m.options.HealthProbeBindAddress, Handler: serving.NewProbes(m.live, m.ready)}}
	if m.options.MetricsBindAddress != disabled {
		port, err := m.metricsPort(ctx)
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}

	for _, port := range ports {
		port.Turns = m.turns
		server, err := port.Listen(ctx)
		if err != nil {
			return err
		}
		if err := m.Add(server); err != nil {
			return fmt.Errorf("failed to add the server of %s: %w", port.Name, err)
		}
	}

	return nil
}

func (m *Manager) metricsPort(ctx context.Context) (serving.Port, error) {
	config, err := serving.MetricsTLS(ctx, m.options.MetricsCertDir)
	if err != nil {
		return serving.Port{}, err
	}

	provided, err := filters.WithAuthenticationAndAuthorization(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return serving.Port{}, fmt.Errorf("failed to create the authentication of the metrics endpoint: %w", err)
	}

	filter := func(next http.Handler) (http.Handler, error) { return provided(ctrl.Log.WithName("metrics"), next) }
	handler, err := serving.NewMetrics(filter, promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	return serving.Port{Name: "metrics", Address: m.options.MetricsBindAddress, TLS: config, Handler: handler}, err
}
