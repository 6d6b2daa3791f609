package integration

// This file checks the operator's RBAC permissions. The permissions of config/rbac suffice, and the
// operator uses each of them. The bundle grants the same permissions except for the ones that only
// installs without OLM use.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// checkPermissions returns an error if the API server denied the operator a request in any test, or
// if the operator has not used a verb that its roles grant. TestMain calls it after all tests. A
// selection of tests may leave verbs unused, but setRest and the run of all tests use each.
func checkPermissions(ctx context.Context) error {
	entries, err := apiserver.ReadAudit(suite.auditLog)
	if err != nil {
		return err
	}
	used := sets.New[string]()
	var errs []error
	for _, entry := range entries {
		used.Insert(entry.Permission())
		if entry.Forbidden() {
			errs = append(errs, fmt.Errorf("refused: %s", entry.Permission()))
		}
	}
	selected := flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != ""
	if selected && os.Getenv(setVariable) != setRest {
		return errors.Join(errs...)
	}
	// The audit log does not show these permissions. Admission checks the first five on the
	// operator's behalf (OwnerReferencesPermissionEnforcement, and OpenShift's
	// RestrictedEndpointsAdmission). The last one is for an Event that repeats within minutes.
	used.Insert("update operator.example.com/nginxoperators/finalizers",
		"delete /secrets", "delete apps/deployments", "delete /services", "create discovery.k8s.io/endpointslices/restricted",
		"patch events.k8s.io/events")
	// No test here migrates objects. test/integration/migration checks these permissions.
	used.Insert(harness.MigrationPermissions...)
	used.Insert(harness.KubeMigratorPermissions...)
	// The operator deletes a StorageVersionMigration of that API only if the CRD changes during the
	// migration.
	used.Insert("delete migration.k8s.io/storageversionmigrations")
	// On API servers that cannot stream a list (before Kubernetes 1.34), a watch starts with a
	// list.
	for grant := range used {
		if watched, found := strings.CutPrefix(grant, "watch "); found {
			used.Insert("list " + watched)
		}
	}
	cluster, namespaced, election, local := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}, &rbacv1.Role{}, &rbacv1.Role{}
	if err := errors.Join(
		suite.admin.Get(ctx, client.ObjectKey{Name: "nginx-operator-manager-cluster-role"}, cluster),
		suite.admin.Get(ctx, client.ObjectKey{Name: "nginx-operator-manager-role"}, namespaced),
		suite.admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-leader-election-role"}, election),
		suite.admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-manager-role"}, local),
	); err != nil {
		return fmt.Errorf("failed to read the roles: %w", err)
	}
	for _, grant := range grantsOf(slices.Concat(cluster.Rules, namespaced.Rules, election.Rules, local.Rules)) {
		if !used.Has(strings.Split(grant, " named ")[0]) {
			errs = append(errs, fmt.Errorf("granted and never used: %s", grant))
		}
	}
	return errors.Join(errs...)
}

// grantsOf returns one line for each verb on a resource, with the object's name if the rule
// restricts names.
func grantsOf(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, rule := range rules {
		names := []string{""}
		if len(rule.ResourceNames) > 0 {
			names = nil
		}
		for _, name := range rule.ResourceNames {
			names = append(names, " named "+name)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, verb+" "+group+"/"+resource+name)
					}
				}
			}
		}
	}
	return out
}

// onlyWithoutOLM are the RBAC permissions of config/rbac that the bundle leaves out. Without OLM,
// the operator creates the certificate of its webhooks and writes it into the webhook
// configurations. For an operator that watches all namespaces, OLM makes namespaced permissions
// cluster-wide, so these unused permissions would grant access to all Secrets.
var onlyWithoutOLM = []string{
	"create /secrets",
	"list /secrets named nginx-operator-webhook-server-cert",
	"update /secrets named nginx-operator-webhook-server-cert",
	"watch /secrets named nginx-operator-webhook-server-cert",
	"list admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"list admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
	"update admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"update admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
	"watch admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"watch admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
}

// onlyWithOLM are the RBAC permissions that only the bundle grants, in order. OLM chooses the names
// of the webhook configurations, and the operator must notice when their CA is replaced.
var onlyWithOLM = []string{
	"list admissionregistration.k8s.io/mutatingwebhookconfigurations",
	"list admissionregistration.k8s.io/validatingwebhookconfigurations",
	"watch admissionregistration.k8s.io/mutatingwebhookconfigurations",
	"watch admissionregistration.k8s.io/validatingwebhookconfigurations",
}

// grantOnlyWithOLM grants the operator onlyWithOLM, until the test ends.
func grantOnlyWithOLM(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "only-with-olm"}}
	var access []authorizationv1.ResourceAttributes
	for _, grant := range onlyWithOLM {
		verb, of, _ := strings.Cut(grant, " ")
		group, resource, _ := strings.Cut(of, "/")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
		access = append(access, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource})
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}
	for _, object := range []client.Object{role, binding} {
		create(t, object)
		t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), object)) })
	}
	for i := range access {
		review := authorizationv1.SubjectAccessReviewSpec{User: operatorUser, ResourceAttributes: &access[i]}
		must(t, apiserver.AwaitAccess(t.Context(), suite.admin, review, true))
	}
}

func TestPermissionsOfTheBundle(t *testing.T) {
	t.Parallel()
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct {
					ClusterPermissions, Permissions []struct{ Rules []rbacv1.PolicyRule }
				}
			}
		}
	}
	must(t, yaml.Unmarshal(must1(os.ReadFile("../../bundle/manifests/nginx-operator.clusterserviceversion.yaml"))(t), &csv))
	inBundle := sets.New[string]()
	for _, permission := range slices.Concat(csv.Spec.Install.Spec.ClusterPermissions, csv.Spec.Install.Spec.Permissions) {
		inBundle.Insert(grantsOf(permission.Rules)...)
	}
	declared := sets.New[string]()
	for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
		for document := range strings.SplitSeq(string(must1(os.ReadFile("../../config/rbac/"+file))(t)), "---\n") {
			role := &rbacv1.Role{}
			must(t, yaml.Unmarshal([]byte(document), role))
			declared.Insert(grantsOf(role.Rules)...)
		}
	}
	if left := sets.List(declared.Difference(inBundle)); !slices.Equal(left, sets.List(sets.New(onlyWithoutOLM...))) {
		t.Errorf("the bundle leaves out\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(onlyWithoutOLM, "\n"))
	}
	if more := sets.List(inBundle.Difference(declared)); !slices.Equal(more, onlyWithOLM) {
		t.Errorf("only the bundle grants\n%s\nwant\n%s", strings.Join(more, "\n"), strings.Join(onlyWithOLM, "\n"))
	}
}
