package e2e

// A release whose replicas all fail, and the upgrade that fixes it, with the commands of
// docs/guide/operator-down.md.
//
//   - OLM cannot upgrade: it fails to list the instances at v1alpha1, and it replaces only a release
//     that works and reports that it is upgradeable.
//   - The commands remove the dead release. The next installation works: both versions are served,
//     and changes are applied.
//   - No request to an instance fails, no Pod of an instance changes, and v1alpha2 can be read all the
//     time. No answer at v1alpha1 is wrong.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/test/harness"
)

// killerName is the name of the admission policy that keeps a release dead.
const killerName = "nginx-operator-e2e-killer"

// killer has an admission policy and its binding, which reject the Pods of one release of the
// operator. OLM sets the environment variable.
const killer = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: POLICY
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: NAMESPACE
    resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [pods]
  validations:
  - expression: >-
      !object.spec.containers.exists(container, has(container.env) && container.env.exists(variable,
      variable.name == "OPERATOR_CONDITION_NAME" && has(variable.value) && variable.value == "CSV"))
    message: no replica of CSV runs
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: POLICY
spec:
  policyName: POLICY
  validationActions: [Deny]
`

func TestDeadOperator(t *testing.T) { testUpgrade(t, testDeadOperator) }

func testDeadOperator(t *testing.T, operator string) {
	dead := suite.published
	subscribe(t, operator, dead.catalogImage, "stable", "Automatic", dead.version)
	arrive(t, operator, "Automatic", dead.version)
	f := newFleet(t, fewObjects)
	load := startLoad(t, f.namespace, suite.reach.service(f.namespace, "web", 8080))
	atOlder, atNewer := startReader(t, f.namespace, older, f.ports), startReader(t, f.namespace, newer, f.ports)
	atNewer.strictly()

	killRelease(t, operator, dead)
	f.cannotBeListed(t, older)
	reportNotUpgradeable(t, operator, dead)
	logOLM(t, operator, "all replicas of "+dead.version+" are dead")
	offer(t, operator, suite.catalogImage)
	upgradeFails(t, operator, dead)

	began := time.Now()
	out, err := documentedIn(t, "guide/operator-down.md", "Replace a release that does not start", suite.delivery,
		strings.NewReplacer("-n operators", "-n "+operator))
	t.Logf("the documented commands: %s", out)
	must(t, err)
	waitFor(t, operator, "the InstallPlans to be deleted with the Subscription", patience, func(ctx context.Context) error {
		plans, err := installPlans(ctx, operator)
		if err == nil && len(plans) > 0 {
			err = fmt.Errorf("%d are left", len(plans))
		}
		return err
	})
	logOLM(t, operator, "the documented commands have run")
	applyText(t, strings.ReplaceAll(harness.SubscriptionManifest, "NAMESPACE", operator))
	arrive(t, operator, "Automatic", suite.version)
	waitForInstall(t, operator)
	t.Logf("FIGURE dead operator: release %s is installed %s after the first documented command", suite.version, seconds(time.Since(began)))
	logOLM(t, operator, suite.version+" is installed")

	waitForUpgradeable(t, operator)
	f.isServed(t)
	const during = "while the operator is dead and is replaced"
	atNewer.finish(t, during)
	atOlder.finish(t, during)
	f.settles(t, during)
	load.finish(t, f.namespace, "load "+during)
	f.useNewFields(t)
}

// killRelease deletes the Pods of a release, rejects new ones until the test ends, and waits until
// OLM sees that the release has failed. A Deployment that is scaled to 0 would be available, and
// OLM would replace it as usual.
func killRelease(t *testing.T, operator string, dead release) {
	t.Helper()
	csv := csvNameOf(dead.version)
	applyText(t, strings.NewReplacer("POLICY", killerName, "NAMESPACE", operator, "CSV", csv).Replace(killer))
	t.Cleanup(func() {
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			policy := objectOf("admissionregistration.k8s.io/v1", kind, killerName)
			if err := client.IgnoreNotFound(suite.admin.Delete(context.WithoutCancel(t.Context()), policy)); err != nil {
				t.Errorf("failed to delete the policy: %v", err)
			}
		}
	})
	// The policy takes effect late, so the first Pods may be replaced. Then no Pod exists for a
	// moment, and the Deployment has not failed.
	selector, err := metav1.ParseToLabelSelector(operatorSelector)
	must(t, err)
	waitFor(t, operator, "the operator to be dead", patience, func(ctx context.Context) error {
		err := suite.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(operator), client.MatchingLabels(selector.MatchLabels),
			client.GracePeriodSeconds(0))
		pods, listErr := operatorPods(ctx, operator)
		deployment := &appsv1.Deployment{}
		getErr := suite.admin.Get(ctx, client.ObjectKey{Namespace: operator, Name: operatorName}, deployment)
		rejected := slices.ContainsFunc(deployment.Status.Conditions, func(condition appsv1.DeploymentCondition) bool {
			return condition.Type == appsv1.DeploymentReplicaFailure && strings.Contains(condition.Message, "no replica of")
		})
		if len(pods) > 0 || !rejected {
			err = errors.Join(err, fmt.Errorf("%d Pods are left, and rejected is %t", len(pods), rejected))
		}
		return errors.Join(err, listErr, getErr)
	})
	waitFor(t, operator, "OLM to see it", patience, func(ctx context.Context) error {
		if succeeded(ctx, operator, dead.version) == nil {
			return fmt.Errorf("%s is Succeeded", csv)
		}
		return nil
	})
}

// cannotBeListed waits until a list at a version fails. The API server answers lists from a cache
// of converted objects, which breaks at the next change of an object.
func (f *fleet) cannotBeListed(t *testing.T, version string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("operator.example.com/" + version)
	list.SetKind("NginxOperatorList")
	waitFor(t, f.namespace, "lists at "+version+" to fail", patience, func(ctx context.Context) error {
		if err := touch(ctx, newObject(f.namespace, "object-0", 0)); err != nil {
			return err
		}
		err := suite.admin.List(ctx, list, client.Limit(500)) // as OLM does
		if err == nil {
			return errors.New("a list succeeds")
		}
		t.Logf("a list at %s fails: %v", version, err)
		return nil
	})
	must(t, f.asCreated(t.Context(), newer))
}

// reportNotUpgradeable leaves the report that a release writes during a fleet rollout.
func reportNotUpgradeable(t *testing.T, operator string, dead release) {
	t.Helper()
	condition := &operatorv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: csvNameOf(dead.version)}}
	update(t, condition, func(condition *operatorv2.OperatorCondition) {
		meta.SetStatusCondition(&condition.Spec.Conditions, metav1.Condition{
			Type: operatorv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "FleetRollout", Message: "left by the dead release",
		})
	})
	waitFor(t, operator, "OLM to read the report", patience, func(ctx context.Context) error {
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(condition), condition)
		if err == nil && !meta.IsStatusConditionFalse(condition.Status.Conditions, operatorv2.Upgradeable) {
			err = fmt.Errorf("the OperatorCondition has %v", condition.Status.Conditions)
		}
		return err
	})
}

// upgradeFails waits until the InstallPlan of this release has failed, and requires that the dead
// release stays.
func upgradeFails(t *testing.T, operator string, dead release) {
	t.Helper()
	took := waitFor(t, operator, "the InstallPlan to fail", installPatience, resolving(operator, func(ctx context.Context) error {
		plans, err := installPlans(ctx, operator)
		if err != nil {
			return err
		}
		for i := range plans {
			names, _, _ := unstructured.NestedStringSlice(plans[i].Object, "spec", "clusterServiceVersionNames")
			if slices.Contains(names, csvName()) && text(&plans[i], "status", "phase") == "Failed" {
				t.Logf("%s failed: %v", plans[i].GetName(), plans[i].Object["status"].(map[string]any)["conditions"])
				return nil
			}
		}
		return fmt.Errorf("none of %d InstallPlans is of %s and failed", len(plans), csvName())
	}))
	t.Logf("FIGURE dead operator: the InstallPlan of %s fails after %s", suite.version, seconds(took))
	logOLM(t, operator, "the InstallPlan has failed")
	holds(t, operator, "the upgrade of a dead operator", 5*time.Second, func(ctx context.Context) error {
		if installed(ctx, operator, suite.version) == nil {
			return fmt.Errorf("%s is installed", suite.version)
		}
		return suite.admin.Get(ctx, client.ObjectKey{Namespace: operator, Name: csvNameOf(dead.version)},
			olmObject("ClusterServiceVersion", operator, csvNameOf(dead.version)))
	})
}

// isServed requires that the CRD serves each version of this release, and that every object can be
// read at each with its port.
func (f *fleet) isServed(t *testing.T) {
	t.Helper()
	crd, err := readCRD(t.Context())
	must(t, err)
	for _, version := range crd.Spec.Versions {
		if !version.Served && slices.Contains(suite.current.served, version.Name) {
			t.Errorf("%s is not served", version.Name)
		}
	}
	must(t, errors.Join(f.asCreated(t.Context(), older), f.asCreated(t.Context(), newer)))
	refusesByAdmission(t, f.namespace)
}

// logOLM logs the state of OLM's objects, which explains a failure.
func logOLM(t *testing.T, operator, when string) {
	t.Helper()
	t.Logf("%s:\n%s", when, kubectl(t, "get", "-n", operator, "subscriptions,installplans,clusterserviceversions,operatorconditions",
		"-o", "custom-columns=KIND:.kind,NAME:.metadata.name,PHASE:.status.phase,STATE:.status.state,INSTALLED:.status.installedCSV,"+
			"REASON:.status.reason,UPGRADEABLE:.status.conditions[?(@.type=='Upgradeable')].status,MESSAGE:.status.message"))
}
