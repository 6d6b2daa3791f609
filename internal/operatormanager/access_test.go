package operatormanager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// accessReviews allows the access to some namespaces, or answers nothing.
type accessReviews struct {
	typedauthorizationv1.SelfSubjectAccessReviewInterface

	mu      sync.Mutex
	allowed []string
	err     error
}

func (a *accessReviews) Create(
	_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := review.Spec.ResourceAttributes
	if asked.Verb != "watch" || asked.Resource != "nginxoperators" {
		return nil, errors.New("it asks for another permission")
	}
	review.Status.Allowed = slices.Contains(a.allowed, asked.Namespace)
	return review, a.err
}

func (a *accessReviews) set(err error, allowed ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed, a.err = allowed, err
}

// TestSplitByAccess verifies that a namespace without permissions does not keep the operator from
// watching the others. If it has permissions in none, or the API server does not answer, it watches
// all namespaces of the flag.
func TestSplitByAccess(t *testing.T) {
	for name, test := range map[string]struct {
		reviews           *accessReviews
		accessible, other []string
	}{
		"all":       {&accessReviews{allowed: []string{"a", "b"}}, []string{"a", "b"}, nil},
		"some":      {&accessReviews{allowed: []string{"b"}}, []string{"b"}, []string{"a"}},
		"none":      {&accessReviews{}, []string{"a", "b"}, []string{"a", "b"}},
		"no answer": {&accessReviews{err: errors.New("timeout")}, []string{"a", "b"}, nil},
	} {
		accessible, missing := splitByAccess(t.Context(), test.reviews, []string{"a", "b"})
		if !slices.Equal(accessible, test.accessible) || !slices.Equal(missing.namespaces, test.other) {
			t.Errorf("%s: watches %v, not %v", name, accessible, missing.namespaces)
		}
	}
	if accessible, missing := splitByAccess(t.Context(), &accessReviews{}, nil); len(accessible)+len(missing.namespaces) > 0 {
		t.Errorf("of all namespaces %v are accessible, and %v are not", accessible, missing.namespaces)
	}
}

// TestMissingAccess verifies that an operator ends soon after it has the permissions in another
// namespace, and neither before nor while the API server does not answer.
func TestMissingAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &accessReviews{allowed: []string{"a"}}
		_, missing := splitByAccess(t.Context(), reviews, []string{"a", "b", "c"})
		ended := make(chan error, 1)
		go func() { ended <- missing.Start(t.Context()) }()
		running := func() {
			t.Helper()
			time.Sleep(10 * accessInterval)
			synctest.Wait()
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v", err)
			default:
			}
		}
		running()
		reviews.set(errors.New("timeout"), "a", "c")
		running()
		reviews.set(nil, "a", "c")
		began := time.Now()
		if err := <-ended; err == nil || !strings.HasSuffix(err.Error(), "now: c") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 2*accessInterval {
			t.Errorf("it ended after %s", took)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := missing.Start(ctx); err != nil {
			t.Errorf("a stopped operator ends with %v", err)
		}
		if err := (&MissingAccess{}).Start(t.Context()); err != nil {
			t.Errorf("with all permissions: %v", err)
		}
	})
}
