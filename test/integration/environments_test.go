package integration

// What the documentation says about clusters and tools that are not installed here, as far as an
// API server shows it.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// reachable runs the command of docs/guide/operations/network.md that shows whether the API server
// reaches the webhooks, and returns its output and its error.
func reachable(t *testing.T, kubeconfig string) (string, error) {
	t.Helper()
	page := must1(os.ReadFile("../../docs/guide/operations/network.md"))(t)
	script := must1(docs.Section(string(page), "Port 9443 and the control plane"))(t)
	tools := must1(filepath.Abs(os.Getenv("KUBEBUILDER_ASSETS")))(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestReachableWebhooks verifies the command with an operator that the API server reaches.
func TestReachableWebhooks(t *testing.T) {
	t.Parallel()
	out, err := reachable(t, filepath.Join(suite.dir, "admin.kubeconfig"))
	if err != nil || !strings.Contains(out, "created (server dry run)") {
		t.Errorf("%v\n%s", err, out)
	}
	stored := newInstance("default", "reachable")
	if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); !apierrors.IsNotFound(err) {
		t.Errorf("the command stores an object: %v", err)
	}
}

// TestUnreachableWebhooks verifies the effects of a network that drops the packets of the API
// server to the webhooks, and that the command finds this. No operator runs.
func TestUnreachableWebhooks(t *testing.T) {
	t.Parallel()
	server := must1(apiserver.Start(t.TempDir(), operatorUser))(t)
	t.Cleanup(func() { must(t, server.Stop()) })
	admin := must1(client.New(server.Admin, client.Options{Scheme: scheme.New()}))(t)
	must(t, apiserver.ApplyUnchanged(t.Context(), admin, "../../config/default"))
	callNobody(t, admin)

	create := func(object client.Object, options ...client.CreateOption) (time.Duration, error) {
		began := time.Now()
		err := admin.Create(t.Context(), object, options...)
		return time.Since(began), err
	}
	// The API server learns of the address with a delay.
	waitFor(t, func() error {
		took, err := create(newInstance("default", "first"), client.DryRunAll)
		if err == nil && took < 5*time.Second {
			err = fmt.Errorf("a create takes %s", took)
		}
		return err
	})
	web := newInstance("default", "web")
	web.Spec.Config = &v1alpha2.Config{Inline: "no configuration of nginx"}
	if took, err := create(web); err != nil || took < 5*time.Second || took > 9*time.Second {
		t.Errorf("a create takes %s: %v", took, err)
	}
	web.Spec.Config.Inline = "still none"
	began := time.Now()
	must(t, admin.Update(t.Context(), web))
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("an update takes %s", took)
	}
	if _, err := create(newObject("default", "old")); err == nil {
		t.Error("an object is created at v1alpha1")
	}
	if out, err := reachable(t, server.AdminKubeconfig); err == nil {
		t.Errorf("the command does not find that nothing answers:\n%s", out)
	}
}

// callNobody makes the API server call an address that accepts connections and never answers.
func callNobody(t *testing.T, admin client.Client) {
	t.Helper()
	listener := must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	url := ptr.To("https://" + listener.Addr().String())

	// The webhook for the CRD would delay the update of the CRD, so the CRD is first. The API
	// server writes the status of a new CRD at the same time.
	must(t, harness.RetryOnConflict(func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: wellknown.CRDName}, crd); err != nil {
			return err
		}
		crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: url}
		return admin.Update(t.Context(), crd)
	}))

	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: wellknown.MutatingName}, mutating))
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: wellknown.ValidatingName}, validating))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: url}
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: url}
	}
	must(t, admin.Update(t.Context(), mutating))
	must(t, admin.Update(t.Context(), validating))
}

// TestReplaceWithoutReplicas verifies that replacing an object with a manifest without replicas
// sets the default. Argo CD's Replace=true does that.
func TestReplaceWithoutReplicas(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	web := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](5) })
	declared := newInstance(namespace, "web")
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		declared.ResourceVersion = web.ResourceVersion
		return suite.admin.Update(t.Context(), declared)
	})
	if replicas := ptr.Deref(declared.Spec.Replicas, 0); replicas != v1alpha2.DefaultReplicas {
		t.Errorf("%d replicas, want %d", replicas, v1alpha2.DefaultReplicas)
	}
	page := must1(os.ReadFile("../../docs/guide/gitops.md"))(t)
	if want := fmt.Sprintf("every sync sets the default, %d,", v1alpha2.DefaultReplicas); !strings.Contains(string(page), want) {
		t.Errorf("gitops.md does not say %q", want)
	}
}
