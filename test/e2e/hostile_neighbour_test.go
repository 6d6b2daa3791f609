package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// neighbourLimit bounds a change in another namespace, including the write. An operator that
	// is blocked by a tenant takes longer. `make bench` measures how fast it is.
	neighbourLimit = 15 * time.Second
	// neighbourPause is the time between two changes. Without a pause, the neighbour's namespace
	// would lose its priority too (internal/manager/queue.go).
	neighbourPause = time.Second
)

// neighbour is an instance in another namespace, with a client that repeatedly changes an
// annotation in spec.service.
type neighbour struct {
	*background
	// slowest is the duration of the slowest change since the last call of endures.
	slowest atomic.Int64
}

func startNeighbour(t *testing.T, object *v1alpha2.NginxOperator) *neighbour {
	t.Helper()
	const annotation = "example.com/round"
	key, out := client.ObjectKeyFromObject(object), &neighbour{}
	out.background = startBackground(t, "changes in another namespace", neighbourPause, func(ctx context.Context, n int) error {
		ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
		defer cancel()
		began := time.Now()
		defer func() { out.slowest.Store(max(out.slowest.Load(), int64(time.Since(began)))) }()
		patch := fmt.Appendf(nil, `{"spec":{"service":{"annotations":{%q:"%d"}}}}`, annotation, n)
		if err := suite.admin.Patch(ctx, newObject(key.Namespace, key.Name, 1), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		return eventually(ctx, func(ctx context.Context) error {
			service := &corev1.Service{}
			if err := suite.admin.Get(ctx, key, service); err != nil {
				return err
			}
			if got := service.Annotations[annotation]; got != strconv.Itoa(n) {
				return fmt.Errorf("the Service has round %s instead of %d", got, n)
			}
			return nil
		})
	})
	return out
}

// endures runs an attack. It requires that a change which began during the attack is applied, and
// that none fails.
func (n *neighbour) endures(t *testing.T, what string, attack func()) {
	t.Helper()
	began, before := time.Now(), n.Counts()
	n.slowest.Store(0)
	attack()
	t.Logf("FIGURE %s: %s", what, seconds(time.Since(began)))
	enough := max(before.Total+2, n.Counts().Total+1) // the first change may have begun before
	waitFor(t, suite.operatorNamespace, "changes in another namespace: "+what, patience, func(context.Context) error {
		if now := n.Counts().Total; now < enough {
			return fmt.Errorf("%d changes", now-before.Total)
		}
		return nil
	})
	t.Logf("FIGURE slowest change in another namespace, %s: %s", what, seconds(time.Duration(n.slowest.Load())))
	if now := n.Counts(); now.Failed > before.Failed {
		t.Errorf("%s: %d changes in another namespace took more than %s: %v", what, now.Failed-before.Failed, neighbourLimit, now.Last)
	}
}
