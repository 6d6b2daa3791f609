package e2e

// This file inspects the CustomResourceDefinition of the API: its conversion, its storage
// version, and its stored versions. It also reads the real versions of the objects in etcd.

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness"
)

const (
	older = "v1alpha1"
	newer = "v1alpha2"
)

// crds is the resource of CustomResourceDefinitions.
var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

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

// checkStored checks the number of objects of a namespace for each version in etcd. It checks nothing on
// other clusters than the local one.
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
// at its end. An empty csv means that there is no OLM.
func storageMigrated(t *testing.T, operator, namespace, csv string) {
	t.Helper()
	blocked := csv == ""
	took := waitFor(t, operator, "the storage migration", migrationPatience, func(ctx context.Context) error {
		// The OperatorCondition comes first: the CRD is large, and frequent reads of it slow down
		// the migration.
		if csv != "" {
			upgradeable, err := upgradeableOf(ctx, operator, csv)
			if err != nil {
				return err
			}
			if upgradeable.Status != metav1.ConditionTrue {
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

// watchCRD logs each change of the versions and the conversion of the CustomResourceDefinition,
// until the test ends or calls stop.
func watchCRD(t *testing.T) (stop func()) {
	t.Helper()
	config, err := ctrl.GetConfig()
	must(t, err)
	api, err := dynamic.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	events, err := api.Resource(crds).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crdName})
	must(t, err)
	var done sync.WaitGroup
	var seen []string
	began, last := time.Now(), ""
	done.Go(func() {
		for event := range events.ResultChan() {
			crd, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				continue
			}
			if now := conversionOf(crd); now != last {
				seen = append(seen, fmt.Sprintf("%7.3f s  %s", time.Since(began).Seconds(), now))
				last = now
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		events.Stop()
		done.Wait()
		t.Logf("FIGURE what happened to the CustomResourceDefinition:\n%s", strings.Join(seen, "\n"))
	})
}

// conversionOf describes the conversion of a CRD in one line. It shows each CA by the first digits
// of its hash.
func conversionOf(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var names []string
	for _, version := range versions {
		version := &unstructured.Unstructured{Object: version.(map[string]any)}
		name := text(version, "name")
		if stored, _, _ := unstructured.NestedBool(version.Object, "storage"); stored {
			name += " (stored)"
		}
		names = append(names, name)
	}
	service := text(crd, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	strategy := text(crd, "spec", "conversion", "strategy")
	cas := casIn(text(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"))
	return fmt.Sprintf("versions %s; strategy %s, service %q, caBundle %v", strings.Join(names, ", "), strategy, service, cas)
}

// casIn returns a short hash for each CA of a caBundle in base64.
func casIn(bundle string) []string {
	text, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return []string{err.Error()}
	}
	found, _ := cert.ParseCertsPEM(text) // fails if there is no certificate
	names := make([]string, len(found))
	for i, ca := range found {
		names[i] = fmt.Sprintf("%.4x", sha256.Sum256(ca.Raw))
	}
	return names
}
