package e2e

// The examples of docs/guide/uploads.md, with smaller limits. TestRecipes runs its commands.
//
//   - With a limit for ephemeral-storage, the kubelet evicts a Pod that stores more. It does not evict
//     a Pod that stores as much without client_body_in_file_only, because it does not see the files.
//     If that changes, the page is wrong.
//   - On a volume with a size of its own, a body that does not fit fails. The Pod stays, and later
//     bodies are accepted.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/test/harness"
)

const (
	// stored is the size of a body that is larger than the limits of the test, and fits is one that
	// is smaller, and larger than nginx's buffer.
	stored, fits = 48 << 20, 1 << 20
	// evictionPatience is longer than the kubelet takes to measure the volumes of a Pod, a minute
	// by default, and to compare the result with the limits.
	evictionPatience = 4 * time.Minute
)

func testUploads(t *testing.T) {
	namespace := newNamespace(t, restricted)
	receiver := uploadsOf(t, namespace, "Receive the uploads")
	must(t, suite.admin.Create(t.Context(), receiver))
	waitForReady(t, receiver)

	limited := uploadsOf(t, namespace, "Limit the Pod", "ephemeral-storage: 2Gi", "ephemeral-storage: 1Mi", "20Gi", "32Mi")
	unseen := limited.DeepCopy()
	unseen.Name = "unseen"
	unseen.Spec.Config.Inline = strings.Replace(unseen.Spec.Config.Inline, "client_body_in_file_only clean;", "", 1)
	onVolume := uploadsOf(t, namespace, "Use a volume", "512Mi", "16Mi", "640Mi", "64Mi")
	for _, object := range []*v1alpha2.NginxOperator{limited, unseen, onVolume} {
		must(t, suite.admin.Create(t.Context(), object))
	}
	for _, object := range []*v1alpha2.NginxOperator{limited, unseen, onVolume} {
		waitForReady(t, object)
	}
	storedBelow(t, limited, "/tmp/")
	storedBelow(t, onVolume, "/var/uploads/")

	fullVolume(t, onVolume)
	evictedBeyond(t, limited, unseen)
}

// toReceiver sends the uploads of the examples to the receiver of the page.
const toReceiver = "proxy_pass http://receiver:8080;"

// uploadsOf returns the example in a section of the page, with replacements. Its answers contain the
// file of the body.
func uploadsOf(t *testing.T, namespace, heading string, edits ...string) *v1alpha2.NginxOperator {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs", "guide", "uploads.md"))
	must(t, err)
	manifest, err := docs.Manifests(string(page), heading)
	must(t, err)
	if strings.Contains(manifest, toReceiver) {
		edits = append(edits, toReceiver, "add_header X-Body-File $request_body_file always; "+toReceiver)
	}
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(manifest, edits[i]) {
			t.Fatalf("the example in %q has no %q", heading, edits[i])
		}
	}
	object := &v1alpha2.NginxOperator{}
	must(t, yaml.UnmarshalStrict([]byte(strings.NewReplacer(edits...).Replace(manifest)), object))
	object.Namespace = namespace
	return object
}

// storedBelow requires that a body is stored in a directory until it has been sent.
func storedBelow(t *testing.T, object *v1alpha2.NginxOperator, dir string) {
	t.Helper()
	waitFor(t, object.Namespace, "an upload to "+object.Name, serviceDelay, func(ctx context.Context) error {
		response, err := upload(ctx, suite.reach.service(object.Namespace, object.Name, 8080), strings.NewReader(strings.Repeat("x", fits)), fits)
		if err == nil && (response.StatusCode != http.StatusNoContent || !strings.HasPrefix(response.Header.Get("X-Body-File"), dir)) {
			err = fmt.Errorf("%s, the body is in %q", response.Status, response.Header.Get("X-Body-File"))
		}
		return err
	})
}

// upload posts a body of a size, and closes the body of the response.
func upload(ctx context.Context, url string, body io.Reader, size int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"upload/file", body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err == nil {
		err = response.Body.Close()
	}
	return response, err
}

// fullVolume posts a body that does not fit into the volume, and then one that does.
func fullVolume(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	before := uidsOf(t, object)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := upload(ctx, suite.reach.service(object.Namespace, object.Name, 8080), io.LimitReader(zeros, stored), stored)
	// nginx answers and closes the connection while the client still sends.
	if err == nil && response.StatusCode != http.StatusInternalServerError {
		t.Errorf("a body that does not fit into the volume: %s", response.Status)
	}
	const full = "No space left on device"
	logs := kubectl(t, "-n", object.Namespace, "logs", "-l", "app.kubernetes.io/instance="+object.Name, "-c", "nginx", "--tail=-1")
	if !strings.Contains(logs, full) {
		t.Errorf("no Pod logs %q: %v", full, err)
	}
	storedBelow(t, object, "/var/uploads/")
	if after := uidsOf(t, object); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the Pods were %v and are %v", before, after)
	}
}

// evictedBeyond requires that the kubelet evicts the Pod of one object that stores more than its
// limit, and not the Pod of another one. The first object is ready again without the Pod.
func evictedBeyond(t *testing.T, limited, unseen *v1alpha2.NginxOperator) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	holdBody(ctx, t, limited)
	holdBody(ctx, t, unseen)
	took := waitFor(t, limited.Namespace, "an eviction", evictionPatience, func(ctx context.Context) error {
		message, err := evicted(ctx, limited)
		if err == nil && !strings.Contains(message, "ephemeral") {
			err = fmt.Errorf("the kubelet says %q", message)
		}
		return err
	})
	t.Logf("FIGURE a Pod that stores more than its limit is evicted after %s", seconds(took))
	// The kubelet measures each Pod at least once a minute.
	if err := harness.Eventually(timeout(t, time.Minute), pollInterval, func(ctx context.Context) error {
		_, err := evicted(ctx, unseen)
		return err
	}); err == nil {
		t.Error("the kubelet also counts files without a name; correct docs/guide/uploads.md")
	}
	waitForReady(t, limited)
	storedBelow(t, limited, "/tmp/")
}

// timeout returns a context that ends after a duration, or with the test.
func timeout(t *testing.T, duration time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	t.Cleanup(cancel)
	return ctx
}

// evicted returns the message of an evicted Pod of an object, or an error if no Pod is evicted.
func evicted(ctx context.Context, object *v1alpha2.NginxOperator) (string, error) {
	pods, err := podsOf(ctx, object)
	for i := range pods {
		if status := &pods[i].Status; status.Phase == corev1.PodFailed && status.Reason == "Evicted" {
			return status.Message, nil
		}
	}
	return "", errors.Join(err, errors.New("no Pod is evicted"))
}

// holdBody sends the largest part of a body to the first Pod of an object, and then so little that
// the request does not end before the context.
func holdBody(ctx context.Context, t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	pods, err := podsOf(ctx, object)
	must(t, err)
	url := suite.reach.pod(&pods[0], 8080)
	sent := make(chan struct{})
	closeSent := sync.OnceFunc(func() { close(sent) })
	slowly := reading(func(p []byte) (int, error) {
		closeSent()
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Second): // nginx waits a minute for the next part
			return zeros(p)
		}
	})
	go func() { _, _ = upload(ctx, url, io.MultiReader(io.LimitReader(zeros, stored), slowly), 2*stored) }()
	select {
	case <-sent:
	case <-time.After(patience):
		t.Fatalf("%s did not take the body", pods[0].Name)
	}
}

// reading is a reader.
type reading func(p []byte) (int, error)

func (r reading) Read(p []byte) (int, error) { return r(p) }

// zeros never ends.
var zeros reading = func(p []byte) (int, error) { clear(p); return len(p), nil }
