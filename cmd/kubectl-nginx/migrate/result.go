package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
)

// notes are the manual steps of a migration.
type notes struct {
	// Lost lists the fields without an equivalent, with advice.
	Lost []string
	// Check lists the differences of the NginxOperator from the workload that can matter, and the
	// values that are not valid.
	Check []string
}

func (n *notes) check(format string, args ...any) {
	n.Check = append(n.Check, fmt.Sprintf(format, args...))
}

// Result is the replacement of a workload.
type Result struct {
	notes

	// From is the kind and name of the workload.
	From   string
	Object *v1alpha2.NginxOperator
	// Keep lists the objects that the NginxOperator references.
	Keep []string

	// whole is the complete nginx.conf of the workload, or nil. included are the texts of its files
	// in directories, by path.
	whole    *wholeFile
	included map[string]string
	// ofPod is the security context of the Pod. isNonRoot reports whether the workload proves that
	// the image of a container does not run as root, by the name of the container, or
	// mainContainer.
	ofPod     map[string]any
	isNonRoot map[string]bool
}

// mainContainer is the nginx container in Result.isNonRoot. Another container can have its name.
const mainContainer = ""

// suffix is added to the name of the workload, because the operator does not adopt existing
// objects.
const suffix = "-web"

func newResult(manifest *unstructured.Unstructured, name string) Result {
	return Result{
		From: manifest.GetKind() + " " + manifest.GetName(),
		Object: &v1alpha2.NginxOperator{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: manifest.GetNamespace()},
		},
	}
}

// finish checks the NginxOperator, and lists the objects that it references.
func (r *Result) finish(manifests []*unstructured.Unstructured) {
	// An image with which no Pod starts is more important than all other differences.
	r.Check = append(r.checkImages().Check, r.Check...)
	r.checkBuiltIn()
	spec := &r.Object.Spec
	for _, manifest := range manifests {
		isChild := slices.Contains([]string{"Deployment", "Service"}, manifest.GetKind())
		if isChild && manifest.GetName() == r.Object.Name && manifest.GetNamespace() == r.Object.Namespace {
			r.check("%s %s has the name of the NginxOperator, which does not take it over (NameConflict); choose another with --name",
				manifest.GetKind(), manifest.GetName())
		}
	}
	for _, message := range utilvalidation.IsDNS1035Label(r.Object.Name) {
		r.check("the name %q is not valid, choose another with --name: %s", r.Object.Name, message)
	}
	for _, problem := range validation.Complete(spec, field.NewPath("spec")) {
		r.check("the result is not valid yet, correct it: %v", problem)
	}

	names := map[string][]string{}
	for kind, index := range map[string]string{"ConfigMap": inputs.ConfigMapIndex, "Secret": inputs.SecretIndex} {
		names[kind] = inputs.Indexes()[index](r.Object)
	}
	if spec.Expose != nil && spec.Expose.Ingress != nil {
		for _, host := range spec.Expose.Ingress.Hosts {
			names["Secret"] = append(names["Secret"], host.TLSSecretName)
		}
	}
	for i := range spec.Volumes {
		if claim := spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names["PersistentVolumeClaim"] = append(names["PersistentVolumeClaim"], claim.ClaimName)
		}
	}
	names["ServiceAccount"] = []string{spec.ServiceAccountName}
	for _, kind := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[kind])
		for _, name := range slices.Compact(names[kind]) {
			if name != "" {
				r.Keep = append(r.Keep, kind+" "+name)
			}
		}
	}
}

// movePath replaces a directory in the configuration.
func (r *Result) movePath(from, to string) {
	if config := r.Object.Spec.Config; config != nil {
		config.Inline = strings.ReplaceAll(config.Inline, from+"/", to+"/")
	}
}

// moveFiles replaces a directory of included files by the directory of spec.files.
func (r *Result) moveFiles(from string) { r.movePath(from, nginxconf.FilesDirectory) }

// YAML returns the manifest. Comments before it list the manual steps.
func (r *Result) YAML() ([]byte, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# Replaces %s. To migrate without downtime, see docs/guide/coming-from.md.\n", printer.Line(r.From))
	for _, one := range r.Keep {
		fmt.Fprintf(&out, "# Keep %s: the spec references it.\n", printer.Line(one))
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Fields without an equivalent", r.Lost}, {"Check before you apply", r.Check}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&out, "# %s:\n", list.title)
		}
		for _, line := range list.lines {
			fmt.Fprintf(&out, "# - %s\n", printer.Line(line))
		}
	}
	raw, err := printer.YAML(struct {
		metav1.TypeMeta `json:",inline"`

		Metadata map[string]string          `json:"metadata"`
		Spec     v1alpha2.NginxOperatorSpec `json:"spec"`
	}{r.Object.TypeMeta, metadataOf(r.Object), r.Object.Spec})
	return append([]byte(out.String()), raw...), err
}

func metadataOf(object *v1alpha2.NginxOperator) map[string]string {
	out := map[string]string{"name": object.Name}
	if object.Namespace != "" {
		out["namespace"] = object.Namespace
	}
	return out
}
