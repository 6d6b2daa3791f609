package main

// This file looks at how far an upgrade is, and writes that as a line of a table.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
)

// The kinds that are looked at.
var (
	instanceKind   = schema.GroupResource{Group: "operator.example.com", Resource: "nginxoperators"}
	namespaceKind  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crdKind        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	migrationKind  = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}
	releaseKind    = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}
	subscribedKind = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "subscriptions"}
	conditionKind  = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v2", Resource: "operatorconditions"}

	listAll = metav1.ListOptions{}
)

const (
	// crdName is the name of the API's CRD, and that of the migration of its objects.
	crdName   = "nginxoperators.operator.example.com"
	succeeded = "Succeeded"
)

// release is one that OLM has on the cluster.
type release struct{ version, phase string }

// state is how far an upgrade is.
type state struct {
	// releases are in the order of their versions; while one replaces the other there are two.
	releases []release
	// served are the versions of the API; the one in which new objects are stored has a star.
	served []string
	// stored are those in which the API server may have objects in its store.
	stored []string
	// migration is how far the StorageVersionMigration is, upgradeable what the newest release reports to OLM.
	migration, upgradeable string
}

// look reads the state from the API server.
func (u *upgrade) look(ctx context.Context) (state, error) {
	list, err := u.api.Resource(releaseKind).Namespace(operatorNamespace).List(ctx, listAll)
	if err != nil {
		return state{}, fmt.Errorf("failed to list ClusterServiceVersions: %w", err)
	}
	crd, err := find(ctx, u.api.Resource(crdKind), crdName)
	if err != nil {
		return state{}, err
	}
	migration, err := find(ctx, u.api.Resource(migrationKind), crdName)
	if err != nil {
		return state{}, err
	}
	s := state{releases: releasesOf(list.Items), served: servedBy(crd), migration: migrationOf(migration)}
	s.stored, _, _ = unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	// OLM makes one for each release, under its name.
	condition, err := find(ctx, u.api.Resource(conditionKind).Namespace(operatorNamespace), csvPrefix+s.newest().version)
	s.upgradeable = upgradeableOf(condition)
	return s, err
}

// find returns an object, or an empty one where there is none or its kind is not known.
func find(ctx context.Context, objects dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &unstructured.Unstructured{}, nil
	}
	if err != nil {
		return &unstructured.Unstructured{}, fmt.Errorf("failed to get %s: %w", name, err)
	}
	return object, nil
}

// newest returns the last release in the order of versions.
func (s state) newest() release {
	if len(s.releases) == 0 {
		return release{}
	}
	return s.releases[len(s.releases)-1]
}

// done reports whether a release is installed, every object is stored in the new version, and OLM may go on from there.
func (s state) done(version string) bool {
	return s.newest() == release{version, succeeded} && slices.Equal(s.stored, []string{finalAPI}) &&
		s.upgradeable == string(metav1.ConditionTrue)
}

// releasesOf returns the releases of this operator among ClusterServiceVersions.
func releasesOf(items []unstructured.Unstructured) []release {
	var out []release
	for i := range items {
		number, ours := strings.CutPrefix(items[i].GetName(), csvPrefix)
		if _, err := version.ParseSemantic(number); !ours || err != nil {
			continue // of another operator
		}
		phase, _, _ := unstructured.NestedString(items[i].Object, "status", "phase")
		if phase == "" {
			phase = "new"
		}
		out = append(out, release{number, phase})
	}
	slices.SortFunc(out, func(a, b release) int {
		order, _ := version.MustParseSemantic(a.version).Compare(b.version)
		return order
	})
	return out
}

// servedBy returns the versions that a CRD serves, and marks the one in which new objects are stored.
func servedBy(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var out []string
	for _, version := range versions {
		version, _ := version.(map[string]any)
		name, _, _ := unstructured.NestedString(version, "name")
		if served, _, _ := unstructured.NestedBool(version, "served"); !served {
			continue
		}
		if stored, _, _ := unstructured.NestedBool(version, "storage"); stored {
			name += "*"
		}
		out = append(out, name)
	}
	return out
}

// migrationOf returns the conditions of a StorageVersionMigration that are true.
func migrationOf(migration *unstructured.Unstructured) string {
	if migration.GetName() == "" {
		return "none"
	}
	var out []string
	for kind, status := range conditionsAt(migration, "status", "conditions") {
		if status == string(metav1.ConditionTrue) {
			out = append(out, kind)
		}
	}
	if len(out) == 0 {
		return "waiting"
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// upgradeableOf returns what the operator says about Upgradeable in its OperatorCondition.
func upgradeableOf(condition *unstructured.Unstructured) string {
	status, found := conditionsAt(condition, "spec", "conditions")["Upgradeable"]
	if !found {
		return "unknown"
	}
	return status
}

// conditionsAt returns the status of each type in a list of conditions.
func conditionsAt(object *unstructured.Unstructured, path ...string) map[string]string {
	list, _, _ := unstructured.NestedSlice(object.Object, path...)
	out := map[string]string{}
	for _, condition := range list {
		condition, _ := condition.(map[string]any)
		kind, _, _ := unstructured.NestedString(condition, "type")
		out[kind], _, _ = unstructured.NestedString(condition, "status")
	}
	return out
}

// columns are those of the table. Widths are those of the longest texts that usually come.
var columns = []struct {
	name    string
	width   int
	meaning string
}{
	{"time", 8, ""},
	{"releases", 35, "the ClusterServiceVersions that OLM has, and their phases"},
	{"served", 18, "versions of the API; new objects are stored in the one with the star"},
	{"stored", 17, "status.storedVersions of the CustomResourceDefinition: versions in which objects may be stored"},
	{"migration", 9, "the StorageVersionMigration, by which Kubernetes stores every object again"},
	{"upgradeable", 11, "OperatorCondition Upgradeable: whether OLM may go on from the newest release"},
	{"page", 8, "requests to the instance's page / how many failed"},
	{"v1alpha1", 8, "reads of all instances at v1alpha1 / how many failed"},
	{"v1alpha2", 8, "the same at v1alpha2"},
}

// legend says what the columns mean.
func legend() string {
	var out strings.Builder
	for _, column := range columns {
		if column.meaning != "" {
			fmt.Fprintf(&out, "%-12s %s\n", column.name, column.meaning)
		}
	}
	return out.String()
}

// header is the first line of the table.
func header() string {
	var names []string
	for _, column := range columns {
		names = append(names, column.name)
	}
	return row(false, names...)
}

// row writes a line of the table, with a mark where something has changed. A text that is too long moves what follows.
func row(changed bool, cells ...string) string {
	var out strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&out, "%-*s  ", columns[i].width, cell)
	}
	mark := " "
	if changed {
		mark = ">"
	}
	return "  " + mark + " " + strings.TrimRight(out.String(), " ") + "\n"
}

// cells returns the state as the table has it, beginning with the second column.
func (s state) cells() []string {
	var releases []string
	for _, release := range s.releases {
		releases = append(releases, release.version+" "+release.phase)
	}
	out := []string{strings.Join(releases, ", "), strings.Join(s.served, " "), strings.Join(s.stored, " "), s.migration, s.upgradeable}
	for i, cell := range out {
		if cell == "" {
			out[i] = "none"
		}
	}
	return out
}
