package e2e

// Strangers post reviews that are small but expensive to decode to each path of each replica. No
// replica restarts, and the operator answers the reviews of the API server afterwards.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/guard"
	"github.com/example/nginx-operator/internal/webhook"
)

const (
	// webhookPort is the container port for reviews.
	webhookPort = "9443"
	// reviewsAtOnce is the number of concurrent reviews. reviewRounds is the number of posts of
	// each review to each replica.
	reviewsAtOnce, reviewRounds = 4, 2
)

// hostileReviews returns bodies of AdmissionReviews by name.
func hostileReviews() map[string]string {
	fill := func(before, element, after string, size int) string {
		return before + strings.Repeat(element+",", (size-len(before)-len(after))/(len(element)+1)-1) + element + after
	}
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`
	crd := head + `"request":{"uid":"1","operation":"UPDATE","name":"nginxoperators.operator.example.com",` +
		`"userInfo":{"username":"` + strings.Repeat(`forged\n`, 10_000) + `"},"object":{"spec":{"versions":[{"name":"v1alpha2",`
	return map[string]string{
		"schemas of a CRD": fill(crd+`"schema":{"openAPIV3Schema":{"allOf":[`, "{}", `]}}}]}}}}`, 4_500_000),
		"causes":           fill(head+`"response":{"status":{"details":{"causes":[`, "{}", `]}}}}`, bounds.MaxReviewBytes),
		"groups":           fill(head+`"request":{"uid":"1","userInfo":{"groups":[`, `""`, `]}}}`, bounds.MaxReviewBytes),
		"elements of a spec": fill(
			head+`"request":{"uid":"1","operation":"CREATE","object":{"spec":{"tolerations":[`, "{}", `]}}}}`, bounds.MaxReviewBytes),
		"depth":   head + `"request":{"object":` + strings.Repeat("[", 3<<20) + strings.Repeat("]", 3<<20) + `}}`,
		"YAML":    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
		"nothing": "",
	}
}

// hostileConversions returns bodies of ConversionReviews by name.
func hostileConversions() map[string]string {
	head := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",`+
		`"request":{"uid":"%s","desiredAPIVersion":%q,"objects":[`,
		strings.Repeat(`forged\n`, 10_000), "operator.example.com/v1alpha1")
	object := `{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator","metadata":{"name":"web"},"spec":%s}`
	list := func(spec string, count int) string {
		one := fmt.Sprintf(object, spec)
		return head + strings.Repeat(one+",", count-1) + one + "]}}"
	}
	return map[string]string{
		"many elements":   list(`{"ports":[`+strings.Repeat(`{"a":1},`, 100_000)+`{}]}`, 10),
		"depth":           list(`{"a":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+"}", 10),
		"too deep":        list(strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20), 1),
		"one long object": list(`{"a":"`+strings.Repeat("x", 40<<20)+`"}`, 1),
		"many objects":    list(`{"replicas":0}`, 400_000),
		"others' objects": strings.ReplaceAll(list("{}", 10), "NginxOperator", "Pod"),
		"no JSON":         head + "]]]]",
	}
}

// strangerReviews posts hostile reviews from Pods without a token. It requires that no replica
// restarts and that admission and conversion work afterwards. It needs the cluster's network
// (suite.local).
func strangerReviews(t *testing.T) {
	t.Helper()
	before := operatorProcesses(t)
	strangers := newStrangers(t, 2)
	pods, err := operatorPods(t.Context(), suite.operatorNamespace)
	must(t, err)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(reviewsAtOnce)
	post := func(path, what, body string) {
		for round := range reviewRounds {
			for i := range pods {
				url := "https://" + net.JoinHostPort(pods[i].Status.PodIP, webhookPort) + path
				poster := strangers[(round+i)%len(strangers)]
				group.Go(func() error {
					status := poster.post(ctx, url, body)
					t.Logf("%s to %s of %s: %s", what, path, pods[i].Name, status)
					return ctx.Err()
				})
			}
		}
	}
	for what, body := range hostileReviews() {
		for _, path := range []string{guard.PathCRD, webhook.PathDefault, webhook.PathValidate, webhook.PathV1alpha1} {
			post(path, what, body)
		}
	}
	for what, body := range hostileConversions() {
		post(conversion.Path, what, body)
	}
	must(t, group.Wait())

	reviewsWork(t)
	if now := operatorProcesses(t); !maps.Equal(before, now) {
		t.Errorf("strangers posted reviews: the operator was %v and is %v", before, now)
	}
}

// post posts a body and returns a summary of the answer for the log. Any answer is fine.
func (s *stranger) post(ctx context.Context, url, body string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client().Do(request)
	if err != nil {
		return fmt.Sprintf("%.200v", err)
	}
	defer func() { _ = response.Body.Close() }()
	read, _ := io.Copy(io.Discard, response.Body)
	return fmt.Sprintf("%s, %d bytes", response.Status, read)
}

// reviewsWork requires that the operator answers reviews of the API server: it rejects an invalid
// object, and a write at v1alpha1 retains the fields that v1alpha1 does not have.
func reviewsWork(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t, restricted)
	waitFor(t, namespace, "a wrong object to be refused", patience, func(ctx context.Context) error {
		object := newObject(namespace, "wrong", 0)
		object.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; daemon on; }"}
		switch err := suite.admin.Create(ctx, object, client.DryRunAll); {
		case err == nil:
			return errors.New("it is admitted")
		case !apierrors.IsInvalid(err):
			return err
		}
		return nil
	})

	object := newObject(namespace, "kept", 0)
	object.Spec.Config = &v1alpha2.Config{Inline: "server { listen 8080; }"}
	must(t, suite.admin.Create(t.Context(), object))
	older := objectOf("operator.example.com/v1alpha1", "NginxOperator", object.Name)
	older.SetNamespace(namespace)
	patch := []byte(`{"metadata":{"annotations":null},"spec":{"forceRedeploy":"now"}}`)
	must(t, suite.admin.Patch(t.Context(), older, client.RawPatch(types.MergePatchType, patch)))
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.Config == nil || object.Spec.ForceRedeploy != "now" {
		t.Errorf("after a write at v1alpha1 the object has %+v", object.Spec)
	}
}
