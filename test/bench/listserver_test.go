//go:build bench

package bench

import (
	"bytes"
	varints "encoding/binary" // binary is the operator's
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/internal/scheme"
)

// listServer is an API server with many objects of one kind, which it creates while it sends them.
// It sends built-in kinds as protocol buffers.
type listServer struct {
	kind     schema.GroupVersionKind
	resource string
	objects  int
	// text and message are the sample as JSON and as a protocol buffer, which is nil for other
	// kinds.
	text, message []byte
}

func newListServer(t *testing.T, resource string, sample client.Object, objects int) *listServer {
	t.Helper()
	kind := must1(apiutil.GVKForObject(sample, scheme.New()))(t)
	sample.GetObjectKind().SetGroupVersionKind(kind)
	out := &listServer{kind: kind, resource: resource, objects: objects, text: must1(json.Marshal(sample))(t)}
	if builtIn, ok := sample.(interface{ Marshal() ([]byte, error) }); ok {
		out.message = must1(builtIn.Marshal())(t)
	}
	return out
}

// numbered returns an encoded sample with the number of an object. Its length stays the same.
func numbered(sample []byte, object int) []byte {
	return bytes.ReplaceAll(sample, []byte(number), fmt.Appendf(nil, "%07d", object))
}

// ServeHTTP implements http.Handler.
func (s *listServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch of := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]; {
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-request.Context().Done()
	case of == "customresourcedefinitions":
		s.definition(w)
	case s.message != nil:
		s.listMessages(w)
	default:
		s.list(w)
	}
}

// definition sends the CustomResourceDefinition of the kind.
func (s *listServer) definition(w io.Writer) {
	_, _ = fmt.Fprintf(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1",
		"metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"%s.%s","uid":"u"},"spec":{"versions":[{"name":%q,"served":true}]},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}]}`, s.resource, s.kind.Group, s.kind.Version)
}

func (s *listServer) list(w io.Writer) {
	_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1234567"},"items":[`,
		s.kind.Kind, s.kind.GroupVersion())
	for i := range s.objects {
		if i > 0 {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = w.Write(numbered(s.text, i))
	}
	_, _ = io.WriteString(w, "]}")
}

// field returns the beginning of a field of a protocol buffer.
func field(number, length int) []byte {
	varint := func(to []byte, value int) []byte { return varints.AppendUvarint(to, uint64(value)) } //nolint:gosec // positive
	return varint(varint(nil, number<<3|2), length)
}

func (s *listServer) listMessages(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	version, kind := s.kind.GroupVersion().String(), s.kind.Kind+"List"
	typeMeta := append(append(field(1, len(version)), version...), append(field(2, len(kind)), kind...)...)
	listMeta := append(field(2, len("1234567")), "1234567"...)
	begin := append(field(1, len(listMeta)), listMeta...)
	item := field(2, len(s.message))
	_, _ = io.WriteString(w, "k8s\x00")
	_, _ = w.Write(append(field(1, len(typeMeta)), typeMeta...))
	_, _ = w.Write(field(2, len(begin)+s.objects*(len(item)+len(s.message))))
	_, _ = w.Write(begin)
	for i := range s.objects {
		_, _ = w.Write(item)
		_, _ = w.Write(numbered(s.message, i))
	}
}
