package migrate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/nginxconf"
)

// Result is the replacement of a workload.
type Result struct {
	// From is the kind and name of the workload.
	From   string
	Object *v1alpha2.NginxOperator
	// Lost lists the fields without an equivalent, with advice.
	Lost []string
	// Keep lists the ConfigMaps and Secrets that the object references.
	Keep []string
}

// suffix is added to the name of the workload, because the operator does not adopt existing
// objects.
const suffix = "-web"

func newResult(manifest *unstructured.Unstructured) Result {
	return Result{
		From: manifest.GetKind() + " " + manifest.GetName(),
		Object: &v1alpha2.NginxOperator{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
			ObjectMeta: metav1.ObjectMeta{Name: manifest.GetName() + suffix, Namespace: manifest.GetNamespace()},
		},
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
	if len(r.Lost) > 0 {
		out.WriteString("# Fields without an equivalent:\n")
	}
	for _, one := range r.Lost {
		fmt.Fprintf(&out, "# - %s\n", printer.Line(one))
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
