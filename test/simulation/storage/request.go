package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Request is a parsed request to the API server.
type Request struct {
	// Verb is get, list, watch, create, update, patch, or delete.
	Verb string
	Key
	Subresource string
	Query       url.Values
	Body        []byte
	// View is the maximum resource version that a list or a new watch sees, or 0 for the newest. It
	// models an API server that lags.
	View int64

	contentType string
	metadata    bool
	http        *http.Request
}

func (r *Request) String() string {
	out := r.Verb + " " + r.Key.String()
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	return out
}

// IsWrite reports whether the request changes the storage.
func (r *Request) IsWrite() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// NewRequest parses an HTTP request.
func NewRequest(from *http.Request) (*Request, error) {
	out := &Request{Query: from.URL.Query(), http: from, contentType: from.Header.Get("Content-Type")}
	out.metadata = strings.Contains(from.Header.Get("Accept"), "as=PartialObjectMetadata")
	if from.Body != nil {
		body, err := io.ReadAll(from.Body)
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	if err := out.locate(strings.Split(strings.Trim(from.URL.Path, "/"), "/")); err != nil {
		return nil, err
	}
	single := out.Name != ""
	switch from.Method {
	case http.MethodGet:
		out.Verb = map[bool]string{true: "get", false: "list"}[single]
		if out.Query.Get("watch") == "true" || out.Query.Get("watch") == "1" {
			out.Verb = "watch"
		}
	case http.MethodPost:
		out.Verb = "create"
	case http.MethodPut:
		out.Verb = "update"
	case http.MethodPatch:
		out.Verb = "patch"
	case http.MethodDelete:
		out.Verb = "delete"
	}
	return out, nil
}

// locate sets the kind, the object, and the subresource of a path.
func (r *Request) locate(path []string) error {
	group, version, rest := "", "v1", path
	switch {
	case len(path) > 2 && path[0] == "api":
		rest = path[2:]
	case len(path) > 3 && path[0] == "apis":
		group, version, rest = path[1], path[2], path[3:]
	default:
		return fmt.Errorf("the model does not serve /%s", strings.Join(path, "/"))
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		r.Namespace, rest = rest[1], rest[2:]
	}
	if r.Resource = find(group, version, rest[0]); r.Resource == nil {
		return fmt.Errorf("the model does not serve /%s", strings.Join(path, "/"))
	}
	if len(rest) > 1 {
		r.Name = rest[1]
	}
	if len(rest) > 2 {
		r.Subresource = rest[2]
	}
	return nil
}

// Serve executes a request.
func (s *Store) Serve(r *Request) *http.Response {
	switch r.Verb {
	case "watch":
		return s.watch(r)
	case "list":
		return answer(http.StatusOK, s.list(r))
	case "get":
		found := s.Get(r.Key)
		if found == nil {
			return Failure(apierrors.NewNotFound(r.Resource.GroupResource(), r.Name))
		}
		return answer(http.StatusOK, r.form(found))
	}
	version, err := s.write(r)
	if err != nil {
		return Failure(err)
	}
	if r.Verb == "delete" && version.Deleted {
		return answer(http.StatusOK, encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			Details: &metav1.StatusDetails{
				Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Resource, UID: version.UID(),
			},
		}))
	}
	return answer(map[bool]int{true: http.StatusCreated, false: http.StatusOK}[r.Verb == "create"], version.Raw)
}

func (s *Store) write(r *Request) (*Version, error) {
	options := Options{Manager: r.Query.Get("fieldManager"), Subresource: r.Subresource}
	if options.Manager == "" {
		options.Manager = "unknown"
	}
	switch r.Verb {
	case "create":
		object := decode(r.Body)
		metadata, _ := object["metadata"].(map[string]any)
		r.Name, _ = metadata["name"].(string)
		return s.Create(r.Key, object, options)
	case "update":
		return s.Update(r.Key, decode(r.Body), options)
	case "patch":
		kind, _, _ := strings.Cut(r.contentType, ";")
		return s.Patch(r.Key, types.PatchType(kind), r.Body, options)
	}
	asked := metav1.DeleteOptions{}
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, &asked); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	only := ptr.Deref(asked.Preconditions, metav1.Preconditions{})
	return s.Delete(r.Key, DeleteOptions{
		UID: ptr.Deref(only.UID, ""), ResourceVersion: ptr.Deref(only.ResourceVersion, ""),
		Now:    ptr.Deref(asked.GracePeriodSeconds, 1) == 0,
		Orphan: ptr.Deref(asked.PropagationPolicy, metav1.DeletePropagationBackground) == metav1.DeletePropagationOrphan,
	})
}

// Failure returns the response for an error of the API server.
func Failure(err error) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer(int(status.Code), encode(status))
}

func encode(object any) []byte {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return raw
}

func answer(code int, body []byte) *http.Response {
	return respond(code, io.NopCloser(strings.NewReader(string(body))))
}

func respond(code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body,
	}
}
