package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// readEvery is the time between two reads of a version. readTimeout bounds each read.
	readEvery   = time.Minute
	readTimeout = 10 * time.Second
)

// Versions reports whether objects can be read at each version of their API, through the API server
// and the conversion. Requests that a Pod posts to the webhooks do not change the result. Create it
// with NewVersions, and add it to a manager: only the leader reads.
type Versions struct {
	reader     client.Reader
	namespaces []string
	kinds      []schema.GroupVersionKind
	readable   *prometheus.GaugeVec
}

// NewVersions registers the metric. The reader must read from the API server, because a cache does
// not notice a failed conversion. It reads in the namespaces, or in all namespaces if there are
// none. The kinds are list kinds, one for each version.
func NewVersions(
	registry prometheus.Registerer, reader client.Reader, namespaces []string, kinds ...schema.GroupVersionKind,
) *Versions {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}

	v := &Versions{reader: reader, namespaces: namespaces, kinds: kinds, readable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nginx_operator_api_readable",
		Help: "1 if the operator could read NginxOperators at this version of the API within the last minute, else 0. " +
			"Only the leader reports it.",
	}, []string{"version"})}

	registry.MustRegister(v.readable)
	return v
}

// Start implements manager.Runnable. It ends with the context.
func (v *Versions) Start(ctx context.Context) error {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		for _, kind := range v.kinds {
			v.read(ctx, kind)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// read reads the metadata of one object at a version.
func (v *Versions) read(ctx context.Context, kind schema.GroupVersionKind) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	readable := v.readable.WithLabelValues(kind.Version)
	for _, namespace := range v.namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := v.reader.List(ctx, list, client.Limit(1), client.InNamespace(namespace))
		if namespace != metav1.NamespaceAll && apierrors.IsForbidden(err) {
			continue // a missing binding in one namespace says nothing about the API
		}

		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to read NginxOperators", "version", kind.Version, "namespace", namespace)
			readable.Set(0)
			return
		}

		if len(list.Items) > 0 {
			break
		}
	}

	readable.Set(1)
}
