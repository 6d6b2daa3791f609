package e2e

// This file inspects the CustomResourceDefinition of the API: its conversion, its storage
// version, and its stored versions. It also reads the real versions of the objects in etcd.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

const (
	older = "v1alpha1"
	newer = "v1alpha2"
)

func readCRD(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, suite.admin.Get(ctx, client.ObjectKey{Name: crdName}, crd)
}

// storedAs returns the number of NginxOperators of a namespace for each version in etcd. Only the
// etcd of the local cluster can be read.
func storedAs(ctx context.Context, namespace string) (map[string]int, error) {
	found, err := harness.StoredVersions(ctx, suite.etcd)
	counts := map[string]int{}
	for name, version := range found {
		if strings.HasPrefix(name, namespace+"/") {
			counts[strings.TrimPrefix(version, v1alpha2.GroupVersion.Group+"/")]++
		}
	}
	return counts, err
}

// allStoredAs returns an error as long as any object of a namespace is stored at another version.
func allStoredAs(ctx context.Context, namespace, version string) error {
	return checkStored(ctx, namespace, func(counts map[string]int) error { return onlyIn(counts, version) })
}

// checkStored checks the number of objects of a namespace for each version in etcd. It checks
// nothing on other clusters than the local one.
func checkStored(ctx context.Context, namespace string, check func(counts map[string]int) error) error {
	if !suite.local {
		return nil
	}
	counts, err := storedAs(ctx, namespace)
	if err != nil {
		return err
	}
	return check(counts)
}

func onlyIn(counts map[string]int, version string) error {
	if len(counts) != 1 || counts[version] == 0 {
		return fmt.Errorf("objects are stored as %v", counts)
	}
	return nil
}

// storageMigrated waits until the API server reports that all objects are stored at the newer
// version, and verifies that in etcd. Under OLM, the migration must block upgrades and release them
// at its end. An empty csv means that there is no OLM. replaceable is true if OLM upgrades
// automatically and may already have replaced the release of csv.
func storageMigrated(t *testing.T, operator, namespace, csv string, replaceable bool) {
	t.Helper()
	blocked := csv == ""
	took := waitFor(t, operator, "the storage migration", migrationPatience, func(ctx context.Context) error {
		// The OperatorCondition comes first: the CRD is large, and frequent reads of it slow down
		// the migration.
		if csv != "" {
			upgradeable, err := upgradeableOf(ctx, operator, csv)
			switch {
			case apierrors.IsNotFound(err) && replaceable:
				blocked = true
			case err != nil:
				return err
			case upgradeable.Status != metav1.ConditionTrue:
				blocked = blocked || upgradeable.Reason == "MigratingStorage"
				return fmt.Errorf("the OperatorCondition says %s, %s: %s", upgradeable.Status, upgradeable.Reason, upgradeable.Message)
			}
		}
		crd, err := readCRD(ctx)
		if err != nil {
			return err
		}
		if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{newer}) {
			return fmt.Errorf("status.storedVersions is %v", stored)
		}
		return nil
	})
	t.Logf("FIGURE storage migration, as seen from the installed release: %s", seconds(took))
	if !blocked {
		t.Error("OLM was not blocked during the migration")
	}
	if suite.local {
		counts, err := storedAs(t.Context(), namespace)
		must(t, err)
		t.Logf("FIGURE objects in etcd: %v", counts)
		must(t, onlyIn(counts, newer))
	}
}

// upgradeableOf returns the condition Upgradeable that the operator reports to OLM.
func upgradeableOf(ctx context.Context, operator, csv string) (*metav1.Condition, error) {
	condition := &operatorv2.OperatorCondition{}
	if err := suite.admin.Get(ctx, client.ObjectKey{Namespace: operator, Name: csv}, condition); err != nil {
		return nil, err
	}
	found := meta.FindStatusCondition(condition.Spec.Conditions, operatorv2.Upgradeable)
	if found == nil {
		return nil, errors.New("the OperatorCondition says nothing yet")
	}
	return found, nil
}
