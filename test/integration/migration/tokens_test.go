package migration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

const (
	// pagedNamespace contains objects that nothing writes except the migration. They span at least
	// four pages of the operator, which reads 50 objects at a time.
	pagedNamespace = "paged"
	paged          = 160
	// cuts is the number of continue tokens that expire.
	cuts = 2
)

// testMigrationWithExpiredTokens verifies that the operator continues its list after etcd was
// compacted, and that no object is written twice. A slow conversion leaves time for the compaction
// while the operator writes the objects of a page.
func testMigrationWithExpiredTokens(t *testing.T, m *migration) {
	m.createPaged(t)
	began := time.Now()
	before := m.flip(t, func() { m.service.Delay(50 * time.Millisecond) })
	for cut := range cuts {
		rewritten := m.rewrittenPaged(t)
		await(t, func() error {
			if now := m.rewrittenPaged(t); now == rewritten {
				return fmt.Errorf("%d of %d objects are rewritten, and no more", now, paged)
			}
			return nil
		})
		harness.Must(t, harness.Compact(t.Context(), m.Etcd))
		await(t, func() error {
			if expired := m.expired(t, began); expired <= cut {
				return fmt.Errorf("%d lists of the operator had an expired token, want %d", expired, cut+1)
			}
			return nil
		})
		t.Logf("the token expired with %d of %d objects rewritten", m.rewrittenPaged(t), paged)
	}
	m.service.Delay(0)
	m.migrate(t, before)

	written := map[string]int{}
	for _, request := range harness.Must1(apiserver.ReadAudit(m.AuditLog, `"status"`, pagedNamespace))(t) {
		ref := request.ObjectRef
		if request.Verb == "patch" && ref.Resource == "nginxoperators" && ref.Subresource == "status" && ref.Namespace == pagedNamespace &&
			request.ResponseStatus.Code == 200 && request.RequestReceivedTimestamp.After(began) {
			written[ref.Name]++
		}
	}
	for i := range paged {
		if n := written[storedName(i)]; n != 1 {
			t.Errorf("%s was written %d times", storedName(i), n)
		}
	}
	if expired := m.expired(t, began); expired != cuts {
		t.Errorf("%d lists of the operator had an expired token, want %d", expired, cuts)
	}
}

// createPaged creates the objects of pagedNamespace, and waits until the operator has written their
// status.
func (m *migration) createPaged(t *testing.T) {
	t.Helper()
	harness.Must(t, m.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pagedNamespace}}))
	harness.Must(t, harness.InParallel(t.Context(), writers, paged, func(ctx context.Context, i int) error {
		object := newInstance(pagedNamespace, storedName(i))
		object.Spec.Paused = true
		return m.admin.Create(ctx, object)
	}))
	m.awaitStatus(t, pagedNamespace, paged)
}

// rewrittenPaged returns the number of objects in pagedNamespace that etcd has at v1alpha2.
func (m *migration) rewrittenPaged(t *testing.T) (n int) {
	t.Helper()
	for key, version := range harness.Must1(harness.StoredVersions(t.Context(), m.Etcd))(t) {
		if strings.HasPrefix(key, pagedNamespace+"/") && version == v1alpha2.GroupVersion.String() {
			n++
		}
	}
	return n
}

// expired returns the number of the operator's lists since a time that the API server did not
// continue.
func (m *migration) expired(t *testing.T, since time.Time) (n int) {
	t.Helper()
	for _, request := range harness.Must1(apiserver.ReadAudit(m.AuditLog, "continue="))(t) {
		if request.Verb == "list" && request.ObjectRef.Resource == "nginxoperators" && request.ResponseStatus.Code == 410 &&
			request.RequestReceivedTimestamp.After(since) {
			n++
		}
	}
	return n
}
