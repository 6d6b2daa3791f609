package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Request is the audit log entry of one request of the operator.
type Request struct {
	Verb           string
	RequestURI     string
	ObjectRef      struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus struct{ Code int }
	// RequestReceivedTimestamp is when the API server received the request. StageTimestamp is when
	// it had answered.
	RequestReceivedTimestamp, StageTimestamp time.Time
	// Annotations include the decision of the authorizer.
	Annotations map[string]string
}

// Forbidden reports whether RBAC denied the request. Admission, for example a quota, rejects
// requests with the same status.
func (r *Request) Forbidden() bool { return r.Annotations["authorization.k8s.io/decision"] == "forbid" }

// IsDryRun reports whether the request is a dry run.
func (r *Request) IsDryRun() bool { return strings.Contains(r.RequestURI, "dryRun=All") }

// IsWrite reports whether the request changes an object.
func (r *Request) IsWrite() bool {
	return !r.IsDryRun() && slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// Permission returns the RBAC permission that the request requires, as in roles: the verb, the API
// group, and the resource.
func (r *Request) Permission() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.APIGroup + "/" + resource
}

// ReadAudit returns the requests for resources in the audit log of an API server. It skips entries
// that do not contain all texts, because decoding every entry of a large log would take too long.
func ReadAudit(file string, texts ...string) ([]Request, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the audit log: %w", err)
	}
	var out []Request
	for line := range bytes.Lines(raw) {
		if slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(line, []byte(text)) }) {
			continue
		}
		var request Request
		if json.Unmarshal(line, &request) == nil && request.ObjectRef.Resource != "" {
			out = append(out, request)
		}
	}
	return out, nil
}
