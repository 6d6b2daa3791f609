package e2e

// Installation through a Subscription, and the lifecycle of instances and of the operator on that
// installation, which the tests share.
//
//   - A Subscription to the default channel results in a ClusterServiceVersion in phase Succeeded,
//     in a namespace that enforces the Pod Security level restricted. Both replicas of the operator
//     are ready.
//   - The operator reports to OLM that it is upgradeable. The catalog offers the channels stable,
//     candidate, and alpha, each with this release as its head.

import (
	"context"
	"fmt"
	"maps"
	"testing"

	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

func TestSubscription(t *testing.T) {
	installBySubscription(t)
	// These tests use separate objects, so they run in parallel.
	instances := map[string]func(*testing.T){
		"catalog":        testCatalog,
		"upgradeable":    testUpgradeable,
		"metrics":        testMetrics,
		"runbooks":       testRunbooks,
		"sample":         testSample,
		"samples":        testSamples,
		"scale":          testScale,
		"children":       testChildren,
		"drift":          testDrift,
		"quota":          testQuota,
		"unschedulable":  testUnschedulable,
		"delete":         testDelete,
		"force redeploy": testForceRedeploy,
		"plugin":         testPlugin,
	}
	// These tests mostly wait until Pods have drained. They do not run with the others, because
	// their load clients would compete with them for CPU time.
	underLoad := map[string]func(*testing.T){
		"changes":         testChangesUnderLoad,
		"blocked changes": testBlockedChanges,
		"rollback":        testRollback,
		"ports":           testFieldsOfPorts,
	}
	// These tests roll out often, so they would delay the endpoints of the others.
	configurations := map[string]func(*testing.T){"masks": testMasks, "many hosts": testManyHosts, "values": testValues}
	token := ""
	if suite.local { // other clusters may lack the images, the metrics API, or a readable audit log
		token = metricsTokenFile(t)
		underLoad["monitoring"] = func(t *testing.T) { testInstanceMonitoring(t, token) }
		instances["requests"], instances["request metrics"] = testRequests, testRequestMetrics
		configurations["contexts"], configurations["modules"] = testContexts, testModules
		underLoad["nginx of Debian"] = func(t *testing.T) { testNginxVersion(t, defaultSuite) }
		underLoad["autoscaling"] = testAutoscaling
	}
	inParallel(t, "instances", instances)
	inParallel(t, "under load", underLoad)
	inParallel(t, "configurations", configurations)
	if suite.local {
		t.Log("FIGURE " + proxyDelay(t.Context()))
		t.Run("monitoring", func(t *testing.T) { testMonitoring(t, token) })
	}
	// These tests change the operator itself, so they run one after another.
	t.Run("certificate of the webhooks", testWebhookCertificate)
	t.Run("rollout of a release", func(t *testing.T) { testFleetRollout(t, 6) })
	t.Run("leader stops", testLeaderStops)
	if suite.local {
		t.Run("leader is killed in a migration", testMigrationKilled)
	}
	t.Run("hostile tenant", testHostileTenant)
	t.Run("permissions", testPermissions)
	t.Run("from OLM to kubectl", testHandover)
}

// TestLongSubscription has what takes longer than the gate allows.
func TestLongSubscription(t *testing.T) {
	installBySubscription(t)
	t.Run("served kinds", testServedKinds)
	t.Run("fields", testAllFields)
	if suite.local {
		t.Run("versions of nginx", testNginxVersions)
		t.Run("uploads", testUploads) // it waits for an eviction
		t.Run("losses of request metrics", testRequestMetricsLosses)
	}
	t.Run("no webhook in a migration", testMigrationWithoutWebhook)
	t.Run("bad image", testBadImage)
	t.Run("rollout of a release", func(t *testing.T) { testFleetRollout(t, 30) })
	t.Run("hostile tenant", testHostileTenant)
	t.Run("from OLM to kubectl and back", testHandover)
}

func installBySubscription(t *testing.T) {
	t.Helper()
	operator := startIn(t, restricted)
	applyManifest(t, operator, harness.CatalogManifest)
	applyManifest(t, operator, harness.SubscriptionManifest)
	t.Log("MATRIX cluster with Kubernetes", firstNode(t).Status.NodeInfo.KubeletVersion)
	t.Logf("FIGURE install by Subscription: %s", seconds(waitForInstall(t, operator)))
}

// inParallel runs subtests of a group in parallel, and waits for all of them.
func inParallel(t *testing.T, group string, tests map[string]func(*testing.T)) {
	t.Run(group, func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
		}
	})
}

// firstNode returns the first node of the cluster. The local cluster has only one, whose kubelet
// has the version of the control plane.
func firstNode(t *testing.T) *corev1.Node {
	t.Helper()
	nodes := &corev1.NodeList{}
	must(t, suite.admin.List(t.Context(), nodes))
	if len(nodes.Items) == 0 {
		t.Fatal("the cluster has no node")
	}
	return &nodes.Items[0]
}

func testUpgradeable(t *testing.T) { waitForUpgradeable(t, suite.operatorNamespace) }

// waitForUpgradeable waits until OLM has taken over from the operator that it may be upgraded.
func waitForUpgradeable(t *testing.T, operator string) {
	t.Helper()
	waitFor(t, operator, "the operator to say that it may be upgraded", patience, func(ctx context.Context) error {
		condition := &operatorv2.OperatorCondition{}
		err := suite.admin.Get(ctx, client.ObjectKey{Namespace: operator, Name: csvName()}, condition)
		if err == nil && !meta.IsStatusConditionTrue(condition.Status.Conditions, operatorv2.Upgradeable) {
			err = fmt.Errorf("the OperatorCondition has %v", condition.Status.Conditions)
		}
		return err
	})
}

func testCatalog(t *testing.T) {
	waitFor(t, suite.operatorNamespace, "the package to be offered", patience, func(ctx context.Context) error {
		// Other catalogs may have a package of this name.
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("packages.operators.coreos.com/v1")
		list.SetKind("PackageManifestList")
		err := suite.admin.List(ctx, list, client.InNamespace(suite.operatorNamespace), client.MatchingLabels{"catalog": catalogName})
		if err != nil {
			return err
		}
		for i := range list.Items {
			item := &list.Items[i]
			if item.GetName() != packageName {
				continue
			}
			channels, _, err := unstructured.NestedSlice(item.Object, "status", "channels")
			if err != nil {
				return err
			}
			offered := map[string]string{}
			for _, channel := range channels {
				channel := &unstructured.Unstructured{Object: channel.(map[string]any)}
				offered[text(channel, "name")] = text(channel, "currentCSV")
			}
			want := map[string]string{"stable": csvName(), "candidate": csvName(), "alpha": csvName()}
			if !maps.Equal(offered, want) || text(item, "status", "defaultChannel") != "stable" {
				return fmt.Errorf("channels %v, default %s", offered, text(item, "status", "defaultChannel"))
			}
			return nil
		}
		return fmt.Errorf("catalog %s has no package %s among %d", catalogName, packageName, len(list.Items))
	})
	subscription := olmObject("Subscription", suite.operatorNamespace, packageName)
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(subscription), subscription))
	if installed := text(subscription, "status", "installedCSV"); installed != csvName() {
		t.Errorf("the Subscription installed %q", installed)
	}
}
