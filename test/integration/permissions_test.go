package integration

// The RBAC permissions of the operator: those of config/rbac are used, all of them, and suffice; those of the bundle are the same but for
// what only installs without OLM use.

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// checkPermissions returns an error where the operator was refused something in any of the tests, or has not used a verb that its
// roles grant. TestMain calls it when all tests are over; a selection of them cannot use everything.
func checkPermissions(ctx context.Context) error {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return nil
	}
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
	// Permissions that the audit log does not show: admission asks for the first four on the operator's behalf
	// (OwnerReferencesPermissionEnforcement), the fifth is for an Event that repeats within minutes, and an API server
	// that cannot stream a list (before Kubernetes 1.34) is asked to list what is watched.
	used.Insert("update operator.example.com/nginxoperators/finalizers",
		"delete /secrets", "delete apps/deployments", "delete /services",
		"patch events.k8s.io/events")
	// Nothing is migrated here; test/integration/migration looks at these.
	used.Insert(harness.MigrationPermissions...)
	used.Insert(harness.KubeMigratorPermissions...)
	// A StorageVersionMigration of that API is deleted only if the CRD changes while it is worked on.
	used.Insert("delete migration.k8s.io/storageversionmigrations")
	for grant := range used {
		if watched, found := strings.CutPrefix(grant, "watch "); found {
			used.Insert("list " + watched)
		}
	}
	cluster, election, local := &rbacv1.ClusterRole{}, &rbacv1.Role{}, &rbacv1.Role{}
	if err := errors.Join(
		suite.admin.Get(ctx, client.ObjectKey{Name: "nginx-operator-manager-role"}, cluster),
		suite.admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-leader-election-role"}, election),
		suite.admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "nginx-operator-manager-role"}, local),
	); err != nil {
		return fmt.Errorf("failed to read the roles: %w", err)
	}
	for _, grant := range grantsOf(slices.Concat(cluster.Rules, election.Rules, local.Rules)) {
		if !used.Has(strings.Split(grant, " named ")[0]) {
			errs = append(errs, fmt.Errorf("granted and never used: %s", grant))
		}
	}
	return errors.Join(errs...)
}

// grantsOf takes rules apart: one line for each verb on a resource, with the name of the object where the rule names one.
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

// onlyWithoutOLM are the RBAC permissions of config/rbac that the bundle leaves out: outside OLM the operator makes the certificate of its
// webhooks, and writes it into their configurations. OLM makes the namespaced permissions of an operator for all namespaces
// cluster-wide, so there a permission that nobody uses is one to everybody's Secrets.
var onlyWithoutOLM = []string{
	"create /secrets",
	"update /secrets named nginx-operator-webhook-server-cert",
	"list admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"list admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
	"update admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"update admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
	"watch admissionregistration.k8s.io/mutatingwebhookconfigurations named nginx-operator-mutating-webhook-configuration",
	"watch admissionregistration.k8s.io/validatingwebhookconfigurations named nginx-operator-validating-webhook-configuration",
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
	if more := sets.List(inBundle.Difference(declared)); len(more) > 0 {
		t.Errorf("only the bundle grants %v", more)
	}
}
