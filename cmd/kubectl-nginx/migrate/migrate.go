package migrate

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
)

// Result is what takes the place of a workload.
type Result struct {
	// From names the workload: its kind and name.
	From   string
	Object *v1alpha2.NginxOperator
	// Lost is what was not carried over, field by field, with where it belongs.
	Lost []string
	// Keep are the ConfigMaps and Secrets that the object names and that stay as they are.
	Keep []string
}

// suffix is added to the name of what was there before: the operator takes over no object that somebody else made.
const suffix = "-web"

// From returns what takes the place of each workload of the manifests.
func From(manifests []*unstructured.Unstructured) ([]Result, error) {
	var out []Result
	for _, manifest := range manifests {
		var one Result
		var err error
		switch kind := manifest.GroupVersionKind().GroupKind().String(); kind {
		case "Deployment.apps":
			one, err = fromDeployment(manifest, manifests)
		case "Nginx.nginx.tsuru.io":
			one, err = fromTsuru(manifest)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", manifest.GetKind(), manifest.GetName(), err)
		}
		for _, problem := range validation.Spec(&one.Object.Spec, field.NewPath("spec")) {
			one.Lost = append(one.Lost, "the result is not valid yet: "+problem.Error())
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, errors.New("the manifests have neither a Deployment (apps/v1) nor a Nginx (nginx.tsuru.io/v1alpha1)")
	}
	return out, nil
}

func newResult(manifest *unstructured.Unstructured) Result {
	return Result{
		From: manifest.GetKind() + " " + manifest.GetName(),
		Object: &v1alpha2.NginxOperator{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator"},
			ObjectMeta: metav1.ObjectMeta{Name: manifest.GetName() + suffix, Namespace: manifest.GetNamespace()},
		},
	}
}

// setWhole takes a complete nginx.conf over.
func (r *Result) setWhole(text string) error {
	found, err := read(text)
	if err != nil {
		return err
	}
	r.Object.Spec.Config = &v1alpha2.Config{Inline: found.http}
	r.Lost = append(r.Lost, found.lost...)
	if found.nginx != (v1alpha2.Nginx{}) {
		r.Object.Spec.Nginx = &found.nginx
	}
	return nil
}

// movePath replaces a directory in the configuration.
func (r *Result) movePath(from, to string) {
	if config := r.Object.Spec.Config; config != nil {
		config.Inline = strings.ReplaceAll(config.Inline, from+"/", to+"/")
	}
}

// moveFiles moves a directory of included files to where spec.files has them.
func (r *Result) moveFiles(from string) { r.movePath(from, nginxconf.FilesDirectory) }

// YAML returns the manifest, after what is to be done by hand as comments.
func (r *Result) YAML() ([]byte, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# Takes the place of %s; docs/guide/coming-from.md says how to move without downtime.\n", r.From)
	for _, one := range r.Keep {
		fmt.Fprintf(&out, "# Keep %s: it is named below.\n", one)
	}
	if len(r.Lost) > 0 {
		out.WriteString("# Not carried over:\n")
	}
	for _, one := range r.Lost {
		fmt.Fprintf(&out, "# - %s\n", strings.ReplaceAll(one, "\n", " "))
	}
	raw, err := yaml.Marshal(struct {
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
