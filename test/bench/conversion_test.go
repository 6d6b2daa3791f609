//go:build bench

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/operatormanager"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	convertedObjects = 10_000
	// listRatio is the maximum time for a list in the other version, relative to a list in the
	// stored version.
	listRatio = 3
)

// kept is the v1alpha2 part of a v1alpha1 object, as stored in its annotation.
const kept = `{"config":{"inline":"server {\n  listen 80;\n  listen 443 ssl;\n  location / {\n    return 200 ok;\n  }\n}\n"},` +
	`"ports":[{"name":"web","port":80,"protocol":"TCP"}],"tls":[{"port":443,"secretName":"cert"}],"drainSeconds":60}`

// TestConversion lists all objects in both versions, with consistent reads. The API server serves
// lists from its watch cache, which has a copy for each version. So a list converts nothing, and
// each change of an object causes one conversion.
func TestConversion(t *testing.T) {
	e := newConversionEnvironment(t, true)
	e.createAll(t)
	harness.Report("conversion-handler", harness.Round(e.convertDirectly(t)), "conversions/s, 10000 objects in one request")

	converted := e.converted.Load()
	stored, other := e.lists(t, 11)
	harness.Report("list-10000-stored-version", seconds(stored), "s (median)")
	harness.Report("list-10000-other-version", seconds(other), "s (median)")
	harness.Report("list-10000-conversions", float64(e.converted.Load()-converted), "objects converted for these lists")
	ratio := harness.Round(other.Seconds() / stored.Seconds())
	harness.Report("list-10000-ratio", ratio, "(under 3)")
	if ratio >= listRatio {
		t.Errorf("a list in the other version takes %.2f times as long", ratio)
	}

	// A change of the CRD makes the API server rebuild its caches, with one request for each
	// object.
	converted = e.converted.Load()
	e.changeCRD(t)
	began := time.Now()
	waitFor(t, 5*time.Minute, func() error {
		if _, err := e.list(t.Context(), v1alpha2.GroupVersion.Version); err != nil {
			return err
		}
		if n := e.converted.Load() - converted; n < convertedObjects {
			return fmt.Errorf("only %d objects are converted", n)
		}
		return nil
	})
	harness.Report("list-10000-after-crd-change", seconds(time.Since(began)), "s until the other version is answered from the cache again")
}

// TestConversionWithoutWatchCache measures lists on an API server without a watch cache, which
// reads from etcd. The API server then sends a conversion request for each object.
func TestConversionWithoutWatchCache(t *testing.T) {
	e := newConversionEnvironment(t, false)
	e.createAll(t)
	converted := e.converted.Load()
	stored, other := e.lists(t, 3)
	harness.Report("list-10000-stored-version-from-etcd", seconds(stored), "s (median)")
	harness.Report("list-10000-other-version-from-etcd", seconds(other), "s (median)")
	harness.Report("list-10000-ratio-from-etcd", harness.Round(other.Seconds()/stored.Seconds()), "")
	harness.Report("conversion-one-by-one", harness.Round(convertedObjects/other.Seconds()), "conversions/s, one object in one request")
	if n := e.converted.Load() - converted; n < 3*convertedObjects {
		t.Errorf("only %d objects were converted, so these lists do not come from etcd", n)
	}
}

// conversionEnvironment is an API server with the CRD, and the operator's conversion webhook in
// this process. The operator does not run, because it would create children for every object.
type conversionEnvironment struct {
	admin     client.Client
	rest      rest.Interface
	webhook   *httptest.Server
	converted atomic.Int64
}

func newConversionEnvironment(t *testing.T, watchCache bool) *conversionEnvironment {
	t.Helper()
	e := &conversionEnvironment{}
	handler := conversion.NewHandler(func() {})
	e.webhook = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		e.converted.Add(int64(bytes.Count(body, []byte(`"kind":"NginxOperator"`))))
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	e.webhook.EnableHTTP2 = true
	e.webhook.StartTLS()
	t.Cleanup(e.webhook.Close)

	control := apiserver.NewEnvironment()
	control.ControlPlane.GetAPIServer().Configure().Set("watch-cache", fmt.Sprint(watchCache))
	config, err := control.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	scheme := operatormanager.NewScheme()
	must(t, apiextensionsv1.AddToScheme(scheme))
	e.admin, err = client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	e.rest = clients.RESTClient()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	raw, err := os.ReadFile("../../config/crd/bases/operator.example.com_nginxoperators.yaml")
	must(t, err)
	must(t, yaml.UnmarshalStrict(raw, crd))
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      ptr.To(e.webhook.URL + conversion.Path),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.webhook.Certificate().Raw}),
			},
		},
	}
	must(t, e.admin.Create(t.Context(), crd))
	waitFor(t, time.Minute, func() error {
		_, err := e.list(t.Context(), v1alpha2.GroupVersion.Version)
		return err
	})
	return e
}

// createAll creates the objects at v1alpha1. Every other object uses fields of v1alpha2.
func (e *conversionEnvironment) createAll(t *testing.T) {
	t.Helper()
	inParallel(t, concurrency, convertedObjects, func(ctx context.Context, i int) error {
		object := newObject("default", i)
		object.Spec.Port = ptr.To[int32](80)
		if i%2 == 0 {
			object.Annotations = map[string]string{wellknown.AnnotationV1alpha2: kept}
		}
		return e.admin.Create(ctx, object)
	})
}

// lists alternates between lists in both versions and returns the median times.
func (e *conversionEnvironment) lists(t *testing.T, times int) (stored, other time.Duration) {
	t.Helper()
	took := map[string][]time.Duration{}
	for range times {
		for _, version := range []string{v1alpha1.GroupVersion.Version, v1alpha2.GroupVersion.Version} {
			began := time.Now()
			raw, err := e.list(t.Context(), version)
			took[version] = append(took[version], time.Since(began))
			must(t, err)
			if n := bytes.Count(raw, []byte(`"kind":"NginxOperator"`)); n != convertedObjects {
				t.Fatalf("%d objects in the list at %s", n, version)
			}
		}
	}
	median := func(version string) time.Duration {
		slices.Sort(took[version])
		return took[version][times/2]
	}
	return median(v1alpha1.GroupVersion.Version), median(v1alpha2.GroupVersion.Version)
}

func (e *conversionEnvironment) list(ctx context.Context, version string) ([]byte, error) {
	path := "/apis/" + v1alpha2.GroupVersion.Group + "/" + version + "/nginxoperators"
	return e.rest.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
}

// convertDirectly sends all objects to the webhook in one request. It returns the conversions per
// second of the fastest of three attempts.
func (e *conversionEnvironment) convertDirectly(t *testing.T) float64 {
	t.Helper()
	list := &v1alpha1.NginxOperatorList{}
	must(t, e.admin.List(t.Context(), list))
	request := &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: v1alpha2.GroupVersion.String()}
	for i := range list.Items {
		list.Items[i].APIVersion, list.Items[i].Kind = v1alpha1.GroupVersion.String(), "NginxOperator"
		raw, err := json.Marshal(&list.Items[i])
		must(t, err)
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: raw})
	}
	body, err := json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"}, Request: request,
	})
	must(t, err)
	var best time.Duration
	for range 3 {
		began := time.Now()
		response, err := e.webhook.Client().Post(e.webhook.URL+conversion.Path, "application/json", bytes.NewReader(body))
		must(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		must(t, err)
		_ = response.Body.Close()
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	return float64(len(list.Items)) / best.Seconds()
}

// changeCRD changes spec.conversion, as a renewed certificate does.
func (e *conversionEnvironment) changeCRD(t *testing.T) {
	t.Helper()
	waitFor(t, time.Minute, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := e.admin.Get(t.Context(), client.ObjectKey{Name: "nginxoperators." + v1alpha2.GroupVersion.Group}, crd); err != nil {
			return err
		}
		config := crd.Spec.Conversion.Webhook.ClientConfig
		config.CABundle = append(config.CABundle, '\n')
		return e.admin.Update(t.Context(), crd)
	})
}
