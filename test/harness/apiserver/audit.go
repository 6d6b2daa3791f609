package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Request is what the audit log records of one request of the operator.
type Request struct {
	Verb           string
	RequestURI     string
	ObjectRef      struct{ Resource, Subresource, Namespace, Name, APIGroup string }
	ResponseStatus struct{ Code int }
	// Annotations say among others what authorization decided.
	Annotations map[string]string
}

// Forbidden reports whether RBAC did not permit the request. Admission, a quota for example, refuses with the same status.
func (r *Request) Forbidden() bool { return r.Annotations["authorization.k8s.io/decision"] == "forbid" }

// IsDryRun reports whether the request asks what a write would come to.
func (r *Request) IsDryRun() bool { return strings.Contains(r.RequestURI, "dryRun=All") }

// IsWrite reports whether the request writes.
func (r *Request) IsWrite() bool {
	return !r.IsDryRun() && slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// Permission is the RBAC permission that the request takes, as roles grant it: the verb, the API group and the resource.
func (r *Request) Permission() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.APIGroup + "/" + resource
}

// ReadAudit reads the audit log of an API server.
func ReadAudit(file string) ([]Request, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the audit log: %w", err)
	}
	var out []Request
	for line := range bytes.Lines(raw) {
		var request Request
		if json.Unmarshal(line, &request) == nil && request.ObjectRef.Resource != "" {
			out = append(out, request)
		}
	}
	return out, nil
}
