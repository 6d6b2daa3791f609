package operatormanager

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// accessInterval is the time between two checks of the namespaces without access. Replicas add
	// up to the same time, so that they do not restart at once.
	accessInterval = 10 * time.Second
	// accessTimeout bounds the check of all namespaces. Those without an answer count as before.
	accessTimeout = 10 * time.Second
)

// MissingAccess are the watched namespaces in which the operator has no permissions. Add it to the
// manager: it ends the operator as soon as it has the permissions in one of them, so that the next
// process watches the namespace.
type MissingAccess struct {
	namespaces []string
	reviews    typedauthorizationv1.SelfSubjectAccessReviewInterface
}

// Accessible returns the watched namespaces in which the operator has permissions, and all others. A
// cache never fills if it cannot list one of its namespaces, and the administrator of a namespace
// can delete the RoleBinding. Without this check, the next start of the operator would then stop the
// reconciles of all namespaces. If there is no access to any namespace, it returns all as
// accessible, because an operator that is given none watches all namespaces.
func Accessible(ctx context.Context, cfg *rest.Config, namespaces []string) ([]string, *MissingAccess, error) {
	client, err := typedauthorizationv1.NewForConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to configure the client of access reviews: %w", err)
	}
	accessible, missing := splitByAccess(ctx, client.SelfSubjectAccessReviews(), namespaces)
	return accessible, missing, nil
}

func splitByAccess(
	ctx context.Context, reviews typedauthorizationv1.SelfSubjectAccessReviewInterface, namespaces []string,
) ([]string, *MissingAccess) {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	var accessible []string
	missing := &MissingAccess{reviews: reviews}
	for _, namespace := range namespaces {
		if mayWatch(ctx, reviews, namespace, true) {
			accessible = append(accessible, namespace)
			continue
		}
		missing.namespaces = append(missing.namespaces, namespace)
		ctrl.Log.Info("Not watching a namespace without permissions: bind ClusterRole nginx-operator-manager-role to the operator's "+
			"ServiceAccount in it, or remove it from --watch-namespaces", "namespace", namespace)
	}
	if len(accessible) == 0 {
		return namespaces, missing
	}
	return accessible, missing
}

// Start implements manager.Runnable. It ends with the context, or with an error if the operator has
// permissions in another namespace.
func (m *MissingAccess) Start(ctx context.Context) error {
	if len(m.namespaces) == 0 {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(accessInterval + rand.N(accessInterval)): //nolint:gosec // a delay, not a secret
		}
		if found := m.found(ctx); len(found) > 0 {
			return fmt.Errorf("restarting to watch namespaces in which the operator has permissions now: %s", strings.Join(found, ", "))
		}
	}
}

// found returns the namespaces in which the operator has permissions now.
func (m *MissingAccess) found(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	return slices.DeleteFunc(slices.Clone(m.namespaces), func(one string) bool { return !mayWatch(ctx, m.reviews, one, false) })
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Each replica has a cache.
func (m *MissingAccess) NeedLeaderElection() bool { return false }

// mayWatch reports whether the operator may watch the NginxOperators of a namespace, or otherwise if
// the API server does not answer.
func mayWatch(
	ctx context.Context, reviews typedauthorizationv1.SelfSubjectAccessReviewInterface, namespace string, otherwise bool,
) bool {
	review, err := reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "watch", Group: v1alpha2.GroupVersion.Group, Resource: "nginxoperators",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return otherwise
	}
	return review.Status.Allowed
}
