package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

// AwaitAccess waits up to one minute until the API server allows the access, or denies it if
// allowed is false. The API server sees changes of roles and bindings with a delay.
func AwaitAccess(ctx context.Context, admin client.Client, access authorizationv1.SubjectAccessReviewSpec, allowed bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return harness.Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: access}
		if err := admin.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			return fmt.Errorf("access of %s: allowed %t, want %t: %s", access.User, review.Status.Allowed, allowed, review.Status.Reason)
		}
		return nil
	})
}

// Scraper reads the metrics of managers with the required permission.
type Scraper struct {
	token string
}

// NewScraper creates a ServiceAccount in a namespace and binds it to a ClusterRole that grants
// access to metrics. It returns when the API server grants the access, because a manager caches a
// denial for 30 seconds.
func NewScraper(ctx context.Context, admin client.Client, namespace, role string) (*Scraper, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scraper"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper-of-" + namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("failed to create who reads the metrics: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("failed to create a token: %w", err)
	}
	access := authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:" + namespace + ":" + account.Name,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	if err := AwaitAccess(ctx, admin, access, true); err != nil {
		return nil, err
	}
	return &Scraper{request.Status.Token}, nil
}

// Scrape returns the metrics that a manager serves at address (host:port). It retries for up to one
// minute, because a manager can become ready shortly before it serves metrics.
func (s *Scraper) Scrape(ctx context.Context, address string) (metrics string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = harness.Eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		code, body, err := harness.GetMetrics(ctx, "https://"+address, s.token)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("the metrics are answered with %d: %s", code, body)
		}
		metrics = body
		return err
	})
	return metrics, err
}
