package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/bounds"
	"github.com/example/nginx-operator/pkg/bounds/boundstest"
	"github.com/example/nginx-operator/test/harness"
)

// maxResident is the maximum memory in MiB that one review may add to the process.
const maxResident = 32 * boundstest.Larger

// grows returns by how many MiB the process grows while do runs. It returns the minimum of several
// tries, because a busy machine collects garbage late.
func grows(t *testing.T, do func()) float64 {
	t.Helper()
	least := growsOnce(t, do)
	for tries := 1; least >= maxResident && tries < 5 && !t.Failed(); tries++ {
		least = min(least, growsOnce(t, do))
	}
	return least
}

func growsOnce(t *testing.T, do func()) float64 {
	t.Helper()
	// The limit applies to the memory in use. Frequent collections exclude garbage from the
	// measurement.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	debug.FreeOSMemory()
	const forgetPeak = "5"
	if err := os.WriteFile("/proc/self/clear_refs", []byte(forgetPeak), 0); err != nil {
		t.Fatal(err)
	}
	before, _, err := harness.Memory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	do()
	_, most, err := harness.Memory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return most - before
}

// listReview returns a review with count copies of an object, and the length of the review. The
// review is never in memory as a whole.
func listReview(version string, object []byte, count int) (body io.Reader, length int64) {
	head := fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1",`+
		`"request":{"uid":"1","desiredAPIVersion":%q,"objects":[`, version)
	element := append(bytes.Clone(object), ',')
	parts := []io.Reader{strings.NewReader(head)}
	for range count - 1 {
		parts = append(parts, bytes.NewReader(element))
	}
	parts = append(parts, bytes.NewReader(object), strings.NewReader("]}}"))
	return io.MultiReader(parts...), int64(len(head) + len(element)*(count-1) + len(object) + len("]}}"))
}

// send posts a body like the API server does, and reads the answer as a stream. It returns the
// number of converted objects and the result.
func send(t *testing.T, url string, body io.Reader, length int64) (converted int, result metav1.Status) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = length
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Timeout: 5 * time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var tail bytes.Buffer
	counter := &occurrences{of: []byte(`"kind":"NginxOperator"`), tail: &tail}
	if _, err := io.Copy(counter, response.Body); err != nil {
		t.Fatal(err)
	}
	_, text, found := bytes.Cut(tail.Bytes(), []byte(`],"result":`))
	if !found || json.Unmarshal(bytes.TrimSuffix(text, []byte("}}")), &result) != nil {
		t.Fatalf("%s: the answer ends with %.300q", response.Status, tail.Bytes())
	}
	return counter.count, result
}

// occurrences is an io.Writer that counts a text in its input and stores the end of the input.
type occurrences struct {
	of    []byte
	count int
	tail  *bytes.Buffer
}

func (o *occurrences) Write(p []byte) (int, error) {
	const kept = 2 << 10
	before := bytes.Count(o.tail.Bytes(), o.of)
	o.tail.Write(p)
	o.count += bytes.Count(o.tail.Bytes(), o.of) - before
	if over := o.tail.Len() - kept; over > 0 {
		// An occurrence that is truncated here was counted before.
		o.tail.Next(over)
	}
	return len(p), nil
}

func newTestServer(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// largeObject returns an object of about 6 KiB.
func largeObject(t *testing.T) []byte {
	t.Helper()
	object := fullObject(0)
	object.Spec.Config.Inline += strings.Repeat("# a line of a configuration\n", 160)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestHandlerConvertsLargeListsInLittleMemory converts a list of 10,000 objects, as the API server
// sends it. The handler must convert it as a stream.
func TestHandlerConvertsLargeListsInLittleMemory(t *testing.T) {
	const count = 10_000
	url, object := newTestServer(t, newHandler(t)), largeObject(t)
	_, length := listReview(v1alpha1.GroupVersion.String(), object, count)
	grown := grows(t, func() {
		body, _ := listReview(v1alpha1.GroupVersion.String(), object, count)
		if converted, result := send(t, url, body, length); converted != count || result.Status != metav1.StatusSuccess {
			t.Errorf("%d objects are converted, %+v", converted, result)
		}
	})
	t.Logf("%d MiB are converted in %.1f MiB", length>>20, grown)
	if length < 50<<20 {
		t.Errorf("the review has only %d bytes", length)
	}
	if grown >= maxResident {
		t.Errorf("the process has grown by %.1f MiB", grown)
	}
}

// TestHandlerFailsAsAWhole verifies that one object that cannot be converted, at any position in
// the list, makes the answer a failure, and that the client gets this answer. A success is never
// truncated. The handler reads the rest of the body in little memory.
func TestHandlerFailsAsAWhole(t *testing.T) {
	url, object := newTestServer(t, newHandler(t)), largeObject(t)
	for name, bad := range map[string]string{
		"an object of others": `{"apiVersion":"v1","kind":"Pod"}`,
		"no JSON":             `{"apiVersion":}`,
		"too long an object":  `{"a":"` + strings.Repeat("x", 2*bounds.MaxBytes) + `"}`,
		"invalid UTF-8":       `{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator","a":"` + "\xff" + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			grown := grows(t, func() {
				before, lengthBefore := listReview(v1alpha1.GroupVersion.String(), object, 500)
				after, lengthAfter := listReview(v1alpha1.GroupVersion.String(), object, 2_000)
				end := int64(len("]}}"))
				body := io.MultiReader(io.LimitReader(before, lengthBefore-end), strings.NewReader(","+bad+","), after)
				converted, result := send(t, url, body, lengthBefore-end+int64(len(bad))+2+lengthAfter)
				if converted != 500 || result.Status != metav1.StatusFailure || result.Message == "" || len(result.Message) > 1<<10 {
					t.Errorf("%d objects are converted, %+v", converted, result)
				}
			})
			if grown >= maxResident {
				t.Errorf("the process has grown by %.1f MiB", grown)
			}
		})
	}
}

// TestHandlerFailsWithoutTheEnd verifies that a client that disconnects after half of a list gets
// no success, and that no goroutine waits for it.
func TestHandlerFailsWithoutTheEnd(t *testing.T) {
	body, _ := listReview(v1alpha1.GroupVersion.String(), largeObject(t), 10)
	failures := 0
	recorder := httptest.NewRecorder()
	NewHandler(func() { failures++ }).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, io.LimitReader(body, 20_000)))
	var review apiextensionsv1.ConversionReview
	err := json.Unmarshal(recorder.Body.Bytes(), &review)
	if err != nil || review.Response.Result.Status != metav1.StatusFailure || failures != 1 {
		t.Errorf("%v, %d failures: %.300s", err, failures, recorder.Body)
	}
}

// TestHandlerConvertsTheLargestObjectsInLittleMemory posts the objects that use the most memory, as
// any Pod can. A review with them must use no more memory than other reviews.
func TestHandlerConvertsTheLargestObjectsInLittleMemory(t *testing.T) {
	v1, v2 := v1alpha1.GroupVersion.String(), v1alpha2.GroupVersion.String()
	object := func(version, rest string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"NginxOperator",%s}`, version, rest)
	}
	fill := func(element string, most int) string {
		return strings.Repeat(element+",", min(most, (bounds.MaxBytes-1<<10)/(len(element)+1))) + element
	}
	const values = 260_000
	text := func(piece string) string { return strings.Repeat(piece, (bounds.MaxBytes-1<<10)/len(piece)) }
	url := newTestServer(t, newHandler(t))
	for name, test := range map[string]struct {
		to     string
		object []byte
		fails  bool
	}{
		"finalizers":         {to: v2, object: object(v1, `"metadata":{"finalizers":[`+fill(`"a/b"`, values)+`]}`)},
		"finalizers down":    {to: v1, object: object(v2, `"metadata":{"finalizers":[`+fill(`"a/b"`, values)+`]}`)},
		"objects":            {to: v1, object: object(v2, `"spec":{"ports":[`+fill(`{}`, values/2)+`]}`)},
		"numbers":            {to: v1, object: object(v2, `"spec":{"ports":[`+fill(`1`, values)+`]}`)},
		"status":             {to: v2, object: object(v1, `"status":{"a":[`+fill(`{"a":1}`, values/2)+`]}`)},
		"text":               {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text("x")+`"}}`)},
		"text of HTML":       {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text("<")+`"}}`)},
		"quotation marks":    {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text(`\"`)+`"}}`)},
		"control characters": {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text(`\u0001`)+`"}}`)},
		"line separators":    {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text("\u2028")+`"}}`)},
		"invalid UTF-8":      {to: v1, object: object(v2, `"spec":{"config":{"inline":"`+text("\xff")+`"}}`), fails: true},
		"kept text": {
			to: v2, object: object(v1, `"metadata":{"annotations":{"operator.example.com/v1alpha2":"{\"image\":\"`+text("x")+`\"}"}}`),
		},
		"kept text of damage": {to: v2, object: object(v1, `"metadata":{"annotations":{"operator.example.com/v1alpha2":"`+text("x")+`"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			_, length := listReview(test.to, test.object, 3)
			grown := grows(t, func() {
				body, _ := listReview(test.to, test.object, 3)
				if _, result := send(t, url, body, length); (result.Status != metav1.StatusSuccess) != test.fails {
					t.Errorf("%+v", result)
				}
			})
			t.Logf("%d MiB are converted in %.1f MiB", length>>20, grown)
			if grown >= maxResident {
				t.Errorf("the process has grown by %.1f MiB", grown)
			}
		})
	}
}

// TestHandlerLogsLittleOfStrangers verifies that log lines are few and short. Any Pod can post a
// review, and choose its UID and the text of its objects that errors contain.
func TestHandlerLogsLittleOfStrangers(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	forged := strings.Repeat("forged\\n\\u2028", 10_000)
	body := fmt.Sprintf(`{"request":{"uid":%q,"desiredAPIVersion":"v1","objects":[{"apiVersion":%q,"kind":%q}]}}`, "-", "-", "-")
	body = strings.ReplaceAll(body, `"-"`, `"`+forged+`"`)
	synctest.Test(t, func(t *testing.T) { // time does not advance
		handler := newHandler(t)
		for range 100 {
			request := httptest.NewRequestWithContext(log.IntoContext(t.Context(), logger), http.MethodPost, Path, strings.NewReader(body))
			handler.ServeHTTP(httptest.NewRecorder(), request)
		}
	})
	if len(lines) != 20 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 2<<10 || strings.ContainsAny(line, "\n\u2028") {
			t.Errorf("%d bytes: %.300q", len(line), line)
		}
	}
}
