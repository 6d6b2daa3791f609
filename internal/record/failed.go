package record

import "github.com/example/nginx-operator/api/v1alpha2"

// Failed returns the status of a revision that was rolled back, or nil if it was not.
func Failed(status *v1alpha2.NginxOperatorStatus, revision string) *v1alpha2.FailedRevision {
	for i := range status.FailedRevisions {
		if status.FailedRevisions[i].Revision == revision {
			return &status.FailedRevisions[i]
		}
	}
	return nil
}

// HasFailed reports whether a revision was rolled back.
func HasFailed(status *v1alpha2.NginxOperatorStatus, revision string) bool {
	return Failed(status, revision) != nil
}
