package e2e

// A storage migration that an admission policy blocks by rejecting every write of one object, and
// the upgrade after it.
//
//   - An Event on the object reports the failure. The OperatorCondition names the object and the
//     reason for the rejection.
//   - All other objects are migrated. status.storedVersions retains the older version, although the
//     migrator of Kubernetes stops at the first rejected object and removes that version.
//   - The next release is offered and approved, but OLM does not install it until the migration is
//     done.
//   - After the policy is deleted, the migration and the upgrade finish.

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

// refusedName is the object whose writes the policy rejects.
const refusedName = "object-7"

// refuse applies the policy and waits until it takes effect. The returned function or the end of
// the test deletes the policy.
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

// blocked makes this release migrate the storage again while the policy rejects one object, and
// then upgrades to the next release.
func (f *fleet) blocked(t *testing.T, operator string) {
	t.Helper()
	// The InstallPlan waits for an approval, so the catalog can already offer the next release.
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
		holds(t, operator, "the next release", 5*time.Second, func(ctx context.Context) error {
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
		// The next retry of the operator may be a minute away (testMigrationOfRejectedObject waits
		// for it), and OLM looks at the condition twice a minute.
		began := time.Now()
		must(t, touch(t.Context(), objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", crdName)))
		waitForUpgradeable(t, operator)
		must(t, touch(t.Context(), olmObject("ClusterServiceVersion", operator, csvNameOf(suite.next.version))))
		arrive(t, operator, "Manual", suite.next.version)
		t.Logf("FIGURE the next release is installed %s after the policy went", seconds(time.Since(began)))
		storageMigratedAlready(t, f.namespace)
	})
}

// named waits until the OperatorCondition names the object and an Event reports the failure.
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

// waits returns an error unless OLM blocks the next release because the operator is not
// upgradeable.
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

// stillStored returns an error unless status.storedVersions contains the older version.
func stillStored(ctx context.Context) error {
	crd, err := readCRD(ctx)
	if err == nil && !slices.Contains(crd.Status.StoredVersions, older) {
		err = fmt.Errorf("status.storedVersions is %v", crd.Status.StoredVersions)
	}
	return err
}
