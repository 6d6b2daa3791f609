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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
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

	// metadata is true if the client requests only the metadata of objects.
	metadata bool
	http     *http.Request
}

func (r *Request) String() string {
	out := r.Verb + " " + r.Key.String()
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	return out
}

// Order returns a text that differs from that of each other request a process may have at the same
// time.
func (r *Request) Order() string {
	return fmt.Sprintf("%s %t %s %s %s", r, r.metadata, r.Query.Get("fieldSelector"), r.Query.Get("labelSelector"), r.Body)
}

// IsWrite reports whether the request changes the storage.
func (r *Request) IsWrite() bool {
	return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" && !r.isDryRun()
}

// isDryRun reports whether the request only asks for the object that a write would store.
func (r *Request) isDryRun() bool { return r.Query.Get("dryRun") == metav1.DryRunAll }

// requestInfos parses paths and methods like the API server.
var requestInfos = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// NewRequest parses an HTTP request.
func NewRequest(from *http.Request) (*Request, error) {
	info, err := requestInfos.NewRequestInfo(from)
	if err != nil {
		return nil, err
	}
	of := find(info.APIGroup, info.APIVersion, info.Resource)
	if of == nil {
		return nil, fmt.Errorf("the model does not serve %s", from.URL.Path)
	}
	out := &Request{
		Verb: info.Verb, Key: Key{of, info.Namespace, info.Name}, Subresource: info.Subresource, Query: from.URL.Query(),
		metadata: strings.Contains(from.Header.Get("Accept"), "as=PartialObjectMetadata"), http: from,
	}
	if of.Cluster {
		out.Namespace = "" // for a Namespace, this is its name
	}
	if out.Verb == "list" || out.Verb == "watch" {
		out.Name = "" // this is from the field selector, which matches evaluates
	}
	if from.Body != nil {
		out.Body, err = io.ReadAll(from.Body)
	}
	return out, err
}

// Serve executes a request.
func (s *Store) Serve(r *Request) *http.Response {
	if !s.Serves(r.Resource) {
		return answer(http.StatusNotFound, []byte("404 page not found\n"))
	}
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
				Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Resource, UID: version.Meta().GetUID(),
			},
		}))
	}
	return answer(map[bool]int{true: http.StatusCreated, false: http.StatusOK}[r.Verb == "create"], version.Raw)
}

func (s *Store) write(r *Request) (*Version, error) {
	s.dryRun, s.requested = r.isDryRun(), true
	defer func() { s.dryRun, s.requested = false, false }()
	switch r.Verb {
	case "create":
		object := decode(r.Body)
		metadata, _ := object["metadata"].(map[string]any)
		r.Name, _ = metadata["name"].(string)
		return s.Create(r.Key, object)
	case "update":
		return s.Update(r.Key, decode(r.Body), r.Subresource)
	case "patch":
		kind, _, _ := strings.Cut(r.http.Header.Get("Content-Type"), ";")
		return s.Patch(r.Key, types.PatchType(kind), r.Body, r.Subresource)
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
		Now: ptr.Deref(asked.GracePeriodSeconds, 1) == 0,
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
