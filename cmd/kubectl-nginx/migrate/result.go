package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/resolve"
	"github.com/example/nginx-operator/internal/validation"
)

type notes struct {
	// Lost lists the fields without an equivalent, with advice.
	Lost []string
	// Check lists the differences that can matter, and the values that are not valid.
	Check []string
}

func (n *notes) check(format string, args ...any) {
	n.Check = append(n.Check, fmt.Sprintf(format, args...))
}

// Result is the replacement of a workload.
type Result struct {
	notes

	From   string
	Object *v1alpha2.NginxOperator
	// Keep lists the objects that the NginxOperator references.
	Keep []string

	manifests []*unstructured.Unstructured
	// whole is a complete nginx.conf, or nil. included are the texts of files, by path.
	whole    *wholeFile
	included map[string]string
	// ofPod is the security context of the Pod. isNonRoot has the containers, or mainContainer, for
	// which the workload proves that the image does not run as root.
	ofPod     map[string]any
	isNonRoot map[string]bool
}

// mainContainer is the nginx container in Result.isNonRoot. Another container can have its name.
const mainContainer = ""

// suffix makes the default name a new one, because the operator does not adopt existing objects.
const suffix = "-web"

func newResult(from, namespace, name string, manifests []*unstructured.Unstructured) Result {
	return Result{
		From: from,
		Object: &v1alpha2.NginxOperator{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		},
		manifests: manifests, included: map[string]string{},
	}
}

func (r *Result) finish() {
	// An image with which no Pod starts is more important than all other differences.
	r.Check = append(r.checkImages().Check, r.Check...)
	r.checkBuiltIn()
	for _, manifest := range r.manifests {
		isChild := manifest.GetKind() == "Deployment" || manifest.GetKind() == "Service"
		if isChild && manifest.GetName() == r.Object.Name && manifest.GetNamespace() == r.Object.Namespace {
			r.check("%s %s has the name of the NginxOperator, which does not take it over (NameConflict); choose another with --name",
				manifest.GetKind(), manifest.GetName())
		}
	}

	for _, message := range utilvalidation.IsDNS1035Label(r.Object.Name) {
		r.check("the name %q is not valid, choose another with --name: %s", r.Object.Name, message)
	}

	spec := &r.Object.Spec
	for _, problem := range validation.Complete(spec, field.NewPath("spec")) {
		r.check("the result is not valid yet, correct it: %v", problem)
	}

	names, indexes := map[string][]string{}, resolve.Indexes()
	names["ConfigMap"] = indexes[resolve.ConfigMapIndex](r.Object)
	names["Secret"] = indexes[resolve.SecretIndex](r.Object)
	names["ServiceAccount"] = []string{spec.ServiceAccountName}
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

	for _, kind := range slices.Sorted(maps.Keys(names)) {
		for _, name := range sets.List(sets.New(names[kind]...).Delete("")) {
			r.Keep = append(r.Keep, kind+" "+name)
		}
	}
}

func (r *Result) movePath(from, to string) {
	if config := r.Object.Spec.Config; config != nil {
		config.Inline = strings.ReplaceAll(config.Inline, from+"/", to+"/")
	}
}

// YAML returns the manifest. Comments before it list the manual steps.
func (r *Result) YAML() ([]byte, error) {
	var text strings.Builder
	const guide = "# Replaces %s. To migrate without downtime, see docs/guide/coming-from.md.\n"
	fmt.Fprintf(&text, guide, printer.Line(r.From))
	for _, name := range r.Keep {
		fmt.Fprintf(&text, "# Keep %s: the spec references it.\n", printer.Line(name))
	}

	for _, list := range []struct {
		title string
		lines []string
	}{{"Fields without an equivalent", r.Lost}, {"Check before you apply", r.Check}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&text, "# %s:\n", list.title)
		}
		for _, line := range list.lines {
			fmt.Fprintf(&text, "# - %s\n", printer.Line(line))
		}
	}

	raw, err := printer.YAML(struct {
		*v1alpha2.NginxOperator `json:",inline"`

		Status any `json:"status,omitempty"` // hides the status
	}{NginxOperator: r.Object})

	return append([]byte(text.String()), raw...), err
}

// From returns the replacement of each workload in the manifests. name is the name of the only
// replacement, or "" for the name of the workload with a suffix.
func From(manifests []*unstructured.Unstructured, name string) ([]Result, error) {
	var results []Result
	for _, manifest := range manifests {
		var convert func(*Result, *unstructured.Unstructured) error
		switch manifest.GroupVersionKind().GroupKind().String() {
		case "Deployment.apps":
			convert = (*Result).fromDeployment
		case "Nginx.nginx.tsuru.io":
			convert = (*Result).fromTsuru
		default:
			continue
		}

		if name != "" && len(results) > 0 {
			return nil, errors.New("--name requires manifests with exactly one workload. Remove --name, or convert one workload at a time")
		}

		from := manifest.GetKind() + " " + manifest.GetName()
		result := newResult(from, manifest.GetNamespace(), cmp.Or(name, manifest.GetName()+suffix), manifests)
		if err := convert(&result, manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}

		result.finish()
		results = append(results, result)
	}

	if len(results) == 0 {
		return nil, errors.New("the manifests have neither a Deployment (apps/v1) nor an Nginx (nginx.tsuru.io/v1alpha1)")
	}
	return results, nil
}
