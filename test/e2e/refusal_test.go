package e2e

// A storage migration that cannot end, because an admission policy refuses every write of one object, and the upgrade after it.
//
//   - The object is named: in an Event on it, and to OLM, with what refused it.
//   - All others are migrated. status.storedVersions keeps the older version, although its own migrator, which
//     stops at the first object that is refused, says so.
//   - OLM does not replace the operator with the next release, which is offered and approved, until it is over.
//   - Once the policy is gone, all of it ends by itself.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

// refusedName is the object of the policy.
const refusedName = "object-7"

// refuse applies the policy and waits until it works. It ends with the function that is returned, or with the test.
func refuse(t *testing.T, object *v1alpha2.NginxOperator) (end func()) {
	t.Helper()
	applyText(t, harness.Refusal(refusedName))
	end = func() {
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			policy := objectOf("admissionregistration.k8s.io/v1", kind, harness.RefusalName)
			if err := client.IgnoreNotFound(suite.admin.Delete(context.WithoutCancel(t.Context()), policy)); err != nil {
				t.Errorf("failed to delete the policy: %v", err)
			}
		}
	}
	t.Cleanup(end)
	waitFor(t, object.Namespace, "the policy to work", patience, func(ctx context.Context) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"refused":"yes"}}}`))
		if err := suite.admin.Patch(ctx, object.DeepCopy(), patch, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a patch is answered with: %w", err)
		}
		return nil
	})
	return end
}

// blocked has this release migrate the storage again, with an object in the way, and goes on to the next one.
func (f *fleet) blocked(t *testing.T, operator string) {
	t.Helper()
	// Its InstallPlan waits for an approval, so OLM may learn of the next release meanwhile.
	offer(t, operator, suite.next.catalogImage)
	f.storeOlder(t)
	refused := newObject(f.namespace, refusedName, 0)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(refused), refused))
	end := refuse(t, refused)
	f.step(t, "from "+suite.version+" to "+suite.next.version+", blocked by an object", suite.next, func(func()) {
		store(t, newer)
		f.named(t, operator, refused)
		waitFor(t, operator, "the next release to wait", installPatience, func(ctx context.Context) error {
			if err := approve(ctx, operator, suite.next.version); err != nil {
				return err
			}
			return waits(ctx, operator)
		})
		holds(t, operator, "the next release", 10*time.Second, func(ctx context.Context) error {
			return errors.Join(waits(ctx, operator), stillStored(ctx))
		})
		if suite.local {
			counts, err := storedAs(t.Context(), f.namespace)
			must(t, err)
			t.Logf("FIGURE objects in etcd while one is refused: %v", counts)
			if counts[older] != 1 {
				t.Errorf("objects are stored as %v", counts)
			}
		}
		end()
		began := time.Now()
		installed := arrive(t, operator, "Manual", suite.next.version)
		t.Logf("FIGURE the next release is installed %s after the policy went", seconds(time.Since(began)))
		storageMigratedAlready(t, f.namespace)
		rolledOutOnce(t, operator, suite.next.version, installed)
	})
}

// named waits until the object is named wherever somebody may look.
func (f *fleet) named(t *testing.T, operator string, refused *v1alpha2.NginxOperator) {
	t.Helper()
	waitFor(t, operator, "the object to be named", installPatience, func(ctx context.Context) error {
		upgradeable, err := upgradeableOf(ctx, operator, csvName())
		if err != nil {
			return err
		}
		if upgradeable.Status != metav1.ConditionFalse || upgradeable.Reason != "StorageMigrationFailed" ||
			!strings.Contains(upgradeable.Message, f.namespace+"/"+refusedName+": ") ||
			!strings.Contains(upgradeable.Message, "nobody changes object-7") {
			return fmt.Errorf("the OperatorCondition says %s, %s: %s", upgradeable.Status, upgradeable.Reason, upgradeable.Message)
		}
		return hasEvent(ctx, refused, "Warning", "StorageMigrationFailed")
	})
}

// waits reports whether OLM has the next release and blocks it, because the operator asks for that.
func waits(ctx context.Context, operator string) error {
	csv := olmObject("ClusterServiceVersion", operator, csvNameOf(suite.next.version))
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(csv), csv); err != nil {
		return err
	}
	phase, message := text(csv, "status", "phase"), text(csv, "status", "message")
	if phase != "Pending" || !strings.Contains(message, "pgradeable") {
		return fmt.Errorf("%s is %s: %s", csv.GetName(), phase, message)
	}
	return nil
}

// stillStored reports whether status.storedVersions has the older version.
func stillStored(ctx context.Context) error {
	crd, err := readCRD(ctx)
	if err == nil && !slices.Contains(crd.Status.StoredVersions, older) {
		err = fmt.Errorf("status.storedVersions is %v", crd.Status.StoredVersions)
	}
	return err
}
