package lists

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// newList returns a list of ConfigMaps with data of these sizes.
func newList(sizes ...int) *corev1.ConfigMapList {
	out := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}}
	for i, size := range sizes {
		out.Items = append(out.Items, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("page-", i)},
			Data:       map[string]string{"key": strings.Repeat("x", size)},
		})
	}
	return out
}

// encode returns a list as an API server sends it.
func encode(t testing.TB, list runtime.Object, mediaType string) []byte {
	t.Helper()
	info, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !found {
		t.Fatalf("no serializer of %s", mediaType)
	}
	out, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestListsArriveItemByItem verifies that a client with the transport receives the metadata of a
// list, and that each item is passed, in both encodings. A context without items changes nothing.
func TestListsArriveItemByItem(t *testing.T) {
	t.Parallel()
	want := newList(10, 0, 300<<10, 1)
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = w.Write(encode(t, want, mediaType))
		}))
		t.Cleanup(server.Close)
		config := &rest.Config{Host: server.URL}
		config.ContentType = mediaType
		config.Wrap(Wrap)
		config.Wrap(Wrap) // a second transport changes nothing
		client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("shop")

		got, resets := newList(), 0
		receiver := &items{reset: func() { resets++ }, each: func(raw []byte, isJSON bool) error {
			item := corev1.ConfigMap{}
			if isJSON != (mediaType == runtime.ContentTypeJSON) {
				return errors.New("another encoding")
			}
			got.Items = append(got.Items, item)
			last := &got.Items[len(got.Items)-1]
			if isJSON {
				return json.Unmarshal(raw, last)
			}
			return last.Unmarshal(raw)
		}}
		rest, err := client.List(context.WithValue(t.Context(), key{}, receiver), metav1.ListOptions{})
		if err != nil {
			t.Fatal(mediaType, err)
		}
		if rest.ResourceVersion != "7" || rest.Continue != "next" || len(rest.Items) != 0 || resets != 1 {
			t.Errorf("%s: the rest is %+v after %d resets", mediaType, rest, resets)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +received):\n%s", mediaType, diff)
		}
		whole, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(whole.Items) != len(want.Items) {
			t.Errorf("%s: without items in the context: %d items, %v", mediaType, len(whole.Items), err)
		}
	}
}

// TestErrorsKeepTheirBody verifies that a client receives the API server's error.
func TestErrorsKeepTheirBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.Wrap(Wrap)
	ctx := context.WithValue(t.Context(), key{}, &items{reset: func() { t.Error("an error has items") }})
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("error %v", err)
	}
}

// readers are the two formats with a list in each.
func readers(t testing.TB) map[string]func(raw []byte, each func([]byte) error) ([]byte, error) {
	t.Helper()
	return map[string]func([]byte, func([]byte) error) ([]byte, error){
		runtime.ContentTypeJSON: func(raw []byte, each func([]byte) error) ([]byte, error) {
			return readJSON(iotest.OneByteReader(bytes.NewReader(raw)), each)
		},
		runtime.ContentTypeProtobuf: func(raw []byte, each func([]byte) error) ([]byte, error) {
			return readProtobuf(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(raw))), each)
		},
	}
}

// TestTruncatedLists verifies that a list that ends too early is an error, wherever it ends, and
// that the error of an item ends the list.
func TestTruncatedLists(t *testing.T) {
	t.Parallel()
	for mediaType, read := range readers(t) {
		whole := bytes.TrimSpace(encode(t, newList(3, 200), mediaType))
		ends := len(whole)
		if mediaType == runtime.ContentTypeProtobuf {
			ends -= len("\x1a\x00\x22\x00") // two empty texts follow the list
		}
		for end := range ends {
			if _, err := read(whole[:end], func([]byte) error { return nil }); err == nil {
				t.Errorf("%s: no error for %d of %d bytes", mediaType, end, len(whole))
			}
		}
		refusal := errors.New("an item is refused")
		if _, err := read(whole, func([]byte) error { return refusal }); !errors.Is(err, refusal) {
			t.Errorf("%s: error %v", mediaType, err)
		}
	}
}

// TestInformersList verifies that an informer lists before it watches, from the cache of the API
// server.
func TestInformersList(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 2)
	inner := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			requests <- fmt.Sprintf("list at %q", options.ResourceVersion)
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			requests <- fmt.Sprintf("watch from %q, streams %t", options.ResourceVersion, options.SendInitialEvents != nil)
			return watch.NewFake(), nil
		},
	}
	source := NewListWatch(inner, nil, func(object any) (any, error) { return object, nil })
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(source, NotStreamed{}), &corev1.ConfigMap{}, 0)
	go informer.RunWithContext(t.Context())
	for _, want := range []string{`list at "0"`, `watch from "7", streams false`} {
		if got := <-requests; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnusualLists verifies fields in another order, unknown fields, and lists without items.
func TestUnusualLists(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"items":[{"a":1},{}],"kind":"L","metadata":{"resourceVersion":"7"}}`: `{"kind":"L","metadata":{"resourceVersion":"7"}} [{"a":1} {}]`,
		`{"items":null,"new":[{"items":[1]}]}`:                                 `{"new":[{"items":[1]}]} []`,
		`{"items":[]}`:                                                         `{} []`,
		`{}`:                                                                   `{} []`,
		`{"items":{}}`:                                                         `error`,
		`[]`:                                                                   `error`,
		`{"a":1`:                                                               `error`,
		``:                                                                     `error`,
	} {
		items := []string{}
		rest, err := readJSON(strings.NewReader(text), func(raw []byte) error {
			items = append(items, string(raw))
			return nil
		})
		got := fmt.Sprintf("%s %v", rest, items)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	list := appendField(appendField(appendField(nil, 2, []byte("a")), 9, []byte("new")), 2, nil)
	text := appendField(appendField([]byte(prefix), fieldRaw, list), 3, []byte("end"))
	items := []string{}
	rest, err := readProtobuf(bufio.NewReader(bytes.NewReader(text)), func(raw []byte) error {
		items = append(items, string(raw))
		return nil
	})
	want := appendField(appendField([]byte(prefix), fieldRaw, appendField(nil, 9, []byte("new"))), 3, []byte("end"))
	if err != nil || !bytes.Equal(rest, want) || fmt.Sprintf("%q", items) != `["a" ""]` {
		t.Errorf("rest %q, items %q, %v", rest, items, err)
	}
	for _, text := range []string{"", "k8s", "text", prefix + "\x08\x01", prefix + "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, err := readProtobuf(bufio.NewReader(strings.NewReader(text)), func([]byte) error { return nil }); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

// FuzzLists verifies that no response panics, and that an item is never longer than the response.
func FuzzLists(f *testing.F) {
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		f.Add(encode(f, newList(1, 20), mediaType))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		each := func(item []byte) error {
			if len(item) > len(raw) {
				t.Errorf("an item of %d bytes in %d", len(item), len(raw))
			}
			return nil
		}
		_, _ = readJSON(bytes.NewReader(raw), each)
		_, _ = readProtobuf(bufio.NewReader(bytes.NewReader(raw)), each)
	})
}
