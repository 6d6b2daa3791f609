package e2e

// Upgrades through OLM, from the release before this one to this one, and on to the same code under the next number.
//
// Invariants, for each step, while it happens:
//
//   - The Pods of the operands are the same before and after; a client that loads an operand through its Service sees no
//     request fail.
//   - A client that lists every object fifty times a second sees no wrong answer, at v1alpha1 and at v1alpha2: each object
//     is there with its port. At v1alpha1 no read fails. At v1alpha2 none fails either, in the step that introduces it from
//     the moment on at which OLM says that the release is installed.
//   - Writes at v1alpha1 succeed before, during and after.
//   - OLM rolls the operator out once, not twice: the certificate of its webhooks outlives the release before.
//   - Afterwards the fields of v1alpha2 work on objects that were made at v1alpha1 before.
//
// Automatic: the image of the CatalogSource changes, as it does for users of OperatorHub. Manual: each InstallPlan is
// approved by hand.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func TestUpgrade(t *testing.T) {
	for name, approval := range map[string]string{"automatic": "Automatic", "manual": "Manual"} {
		t.Run(name, func(t *testing.T) {
			startClean(t)
			testUpgrade(t, approval)
		})
	}
}

// startClean takes away what the test before left, the API included.
func startClean(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, clean(ctx))
}

func testUpgrade(t *testing.T, approval string) {
	operator := newNamespace(t, restricted)
	suite.operatorNamespace = operator
	defer func() { suite.operatorNamespace = "" }()

	first := suite.previous.catalogImage
	if approval == "Manual" {
		first = suite.catalogImage
	}
	applyText(t, strings.NewReplacer("NAMESPACE", operator, "CATALOG_IMAGE", first).Replace(prepareManifest))
	applyText(t, strings.NewReplacer("NAMESPACE", operator,
		"installPlanApproval: Automatic", "installPlanApproval: "+approval+"\n  startingCSV: "+csvNameOf(suite.previous.version),
	).Replace(subscriptionManifest))
	arrive(t, operator, approval, suite.previous.version)

	fleet := newFleet(t)
	offer := func(image string) {
		catalog := olmObject("CatalogSource", operator, catalogName)
		update(t, catalog, func(catalog *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(catalog.Object, image, "spec", "image"))
		})
	}
	fleet.step(t, "from "+suite.previous.version+" to "+suite.version+", "+approval, func() {
		offer(suite.catalogImage)
		arrive(t, operator, approval, suite.version)
	}, false)
	rolledOutOnce(t, operator, suite.version)
	fleet.useNewFields(t)

	fleet.step(t, "from "+suite.version+" to "+suite.next.version+", "+approval, func() {
		offer(suite.next.catalogImage)
		arrive(t, operator, approval, suite.next.version)
	}, true)
	rolledOutOnce(t, operator, suite.next.version)
}

// arrive waits until a release is installed, and approves what has to be approved on the way. OLM may make a second
// InstallPlan for a release after a conflict, so this goes on until it is there.
func arrive(t *testing.T, operator, approval, version string) {
	t.Helper()
	began := time.Now()
	waitFor(t, operator, "release "+version, installPatience, func(ctx context.Context) error {
		if approval == "Manual" {
			if err := approve(ctx, operator, version); err != nil {
				return err
			}
		}
		return succeeded(ctx, operator, version)
	})
	t.Logf("FIGURE release %s is installed after %s", version, seconds(time.Since(began)))
}

// approve approves the InstallPlans of a release.
func approve(ctx context.Context, operator, version string) error {
	plans := &unstructured.UnstructuredList{}
	plans.SetAPIVersion("operators.coreos.com/v1alpha1")
	plans.SetKind("InstallPlanList")
	if err := suite.admin.List(ctx, plans, client.InNamespace(operator)); err != nil {
		return err
	}
	for i := range plans.Items {
		plan := &plans.Items[i]
		names, _, _ := unstructured.NestedStringSlice(plan.Object, "spec", "clusterServiceVersionNames")
		approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
		if approved || !slices.Contains(names, csvNameOf(version)) {
			continue
		}
		before := plan.DeepCopy()
		if err := unstructured.SetNestedField(plan.Object, true, "spec", "approved"); err != nil {
			return err
		}
		if err := suite.admin.Patch(ctx, plan, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// rolledOutOnce requires that a release has one revision of the operator's Deployment, and that both replicas are ready.
// OLM makes a second one when it has to make another certificate.
func rolledOutOnce(t *testing.T, operator, version string) {
	t.Helper()
	image := ":v" + version
	waitFor(t, operator, "both replicas of the operator", installPatience, func(ctx context.Context) error { return operatorRolledOut(ctx, operator) })
	// A certificate that goes with the release before goes within seconds.
	holds(t, operator, "a second rollout of the operator", 8*time.Second, func(ctx context.Context) error {
		sets := &appsv1.ReplicaSetList{}
		if err := suite.admin.List(ctx, sets, client.InNamespace(operator)); err != nil {
			return err
		}
		revisions := slices.DeleteFunc(sets.Items, func(set appsv1.ReplicaSet) bool {
			return !strings.HasSuffix(set.Spec.Template.Spec.Containers[0].Image, image)
		})
		if len(revisions) != 1 {
			return fmt.Errorf("release %s has %d revisions", version, len(revisions))
		}
		return succeeded(ctx, operator, version)
	})
}

// fleet is a number of objects made at v1alpha1: one with Pods and a load on it, and many without.
type fleet struct {
	namespace string
	web       *v1alpha2.NginxOperator
	pods      []types.UID
	ports     map[string]int32
	steps     int
}

// fleetSize is the number of objects. Each has a port of its own, so that no answer can be right by chance.
const fleetSize = 50

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{namespace: newNamespace(t, restricted), ports: map[string]int32{}}
	f.web = newObject(f.namespace, "web", 2)
	must(t, suite.admin.Create(t.Context(), newV1alpha1(f.namespace, "web", 8080, 2)))
	f.ports["web"] = 8080
	for i := range int32(fleetSize) {
		name := fmt.Sprintf("object-%d", i)
		must(t, suite.admin.Create(t.Context(), newV1alpha1(f.namespace, name, 10000+i, 0)))
		f.ports[name] = 10000 + i
	}
	kubectl(t, "wait", "-n", f.namespace, "--for=condition=Ready", "--timeout=2m", "nginxoperators.v1alpha1.operator.example.com/web")
	f.pods = uidsOf(t, f.web)
	return f
}

// step makes a step of an upgrade while clients go on. Both versions are there already where it is not the step that
// introduces v1alpha2.
func (f *fleet) step(t *testing.T, name string, upgrade func(), both bool) {
	t.Helper()
	f.steps++
	load := startLoad(t, f.namespace, suite.reach.service(f.namespace, "web", 8080))
	older := startReader(t, f.namespace, "v1alpha1", f.ports)
	older.strictly()
	newer := startReader(t, f.namespace, "v1alpha2", f.ports)
	if both {
		newer.strictly()
	}
	writer := startWriter(t, f.namespace)
	seen := watchDefinition(t)

	upgrade()
	newer.strictly()
	// What OLM does after it says that all is done belongs to the upgrade: it deletes the release before.
	time.Sleep(10 * time.Second)

	seen()
	writer.finish(t, name)
	must(t, suite.admin.Delete(t.Context(), writer.object))
	older.finish(t, name)
	newer.finish(t, name)
	load.finish(t, f.namespace, "load "+name)
	if now := uidsOf(t, f.web); !slices.Equal(now, f.pods) {
		t.Errorf("%s: the Pods were %v and are %v", name, f.pods, now)
	}
	if t.Failed() {
		t.Log(report(f.namespace))
	}
}

// useNewFields gives an object that was made at v1alpha1 a configuration of its own, and looks at it at v1alpha1.
func (f *fleet) useNewFields(t *testing.T) {
	t.Helper()
	waitForReady(t, f.web)
	if now := uidsOf(t, f.web); !slices.Equal(now, f.pods) {
		t.Errorf("the release replaced Pods: they were %v and are %v", f.pods, now)
	}
	update(t, f.web, func(o *v1alpha2.NginxOperator) {
		o.Spec.Ports = append(o.Spec.Ports, v1alpha2.Port{Name: "second", Port: 8081})
		o.Spec.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    location / { root /usr/share/nginx/html; }\n}\n" +
			"server {\n    listen 8081;\n    return 200 \"the second port\";\n}\n"}
	})
	waitForReady(t, f.web)
	answers(t, f.namespace, suite.reach.service(f.namespace, "web", 8081), "the second port")
	port := kubectl(t, "get", "-n", f.namespace, "nginxoperators.v1alpha1.operator.example.com", "web", "-o", "jsonpath={.spec.port}")
	if port != "8080" {
		t.Errorf("v1alpha1 shows port %q", port)
	}
	waitForOnly(t, f.web, 2)
	f.pods = uidsOf(t, f.web)
}
