package world

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// audited is an instance. Its Pods are in the form of check.TemplatePods.
type audited struct {
	spec        *v1alpha2.NginxOperatorSpec
	pausedSince time.Time
	// declared has the Pods of all specs, served the Pods that were complete, and known those since
	// the status was lost.
	declared, served, known map[string]bool
	// failed has the Pods that failed, unless they served later. broken has the Pods of each Pod
	// template that failed: templates with the same Pods can mount other configurations.
	failed map[string]bool
	broken map[string]string
	// failures are the failed revisions of the status. lost is true if the status is empty.
	failures map[string]bool
	lost     bool

	// template is the Pod template of the Deployment, and pods its Pods. They stay if the
	// Deployment is deleted.
	template, pods string
	stalls         bool
	// deployment is the UID of the Deployment, and templates has its Pod templates that
	// were complete.
	deployment types.UID
	templates  map[string]bool
	// updated and available are the numbers of Pods, and due is the earliest end of an attempt that
	// makes no further progress. Kubernetes does not restart its deadline for each attempt.
	updated, available int32
	due                time.Time
	// troubled is true if Pods of the template failed since it was written, and complete is the
	// time at which all of them became available, or zero.
	troubled bool
	complete time.Time

	// specs are the specs of the instance, and entrance is that of its children.
	specs    []spoken
	entrance map[*storage.Resource]string
	// admitted has the numbers of the NetworkPolicy, and coming those that it admits only since the
	// last time at which all Pods were complete.
	admitted, coming map[int32]bool
	// backend is the number that the Ingress references.
	backend int32

	service *corev1.Service
	// isServiceMissing is true if another client deleted the Service, and isServiceLost if the spec
	// may have changed since.
	isServiceMissing, isServiceLost bool
	// records has the names of the ControllerRevisions.
	records map[string]bool
	slices  map[string]*discoveryv1.EndpointSlice
	// reached has the ready endpoints of each number of the Service.
	reached map[int32][]string
}

func newAudited() *audited {
	return &audited{
		declared: map[string]bool{}, served: map[string]bool{}, known: map[string]bool{}, failed: map[string]bool{}, broken: map[string]string{},
		slices: map[string]*discoveryv1.EndpointSlice{}, entrance: map[*storage.Resource]string{},
		coming: map[int32]bool{}, records: map[string]bool{},
	}
}

// fail records that Pods of the template of the Deployment failed.
func (one *audited) fail() {
	one.troubled, one.failed[one.pods], one.broken[one.template] = true, true, one.pods
}

// replaces reports whether the Deployment had another Pod template that was complete.
func (one *audited) replaces() bool {
	for template := range one.templates {
		if template != one.template {
			return true
		}
	}
	return false
}

// hasBroken reports whether another Pod template than that of the Deployment failed with these
// Pods.
func (one *audited) hasBroken(pods string) bool {
	for template, failed := range one.broken {
		if template != one.template && failed == pods {
			return true
		}
	}
	return false
}
