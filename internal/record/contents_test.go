package record

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// declarationOfFiles returns a declaration with each kind of ConfigMap, and the files of these
// ConfigMaps.
func declarationOfFiles() (*v1alpha2.NginxOperator, operand.Inputs, operand.Files) {
	object := fixture.NewObject(fixture.WithFiles("a/b.conf", "c.mmdb"))
	copied := operand.NewDeclaredFiles(map[string][]byte{"a/b.conf": []byte("one"), "c.mmdb": {0xff, 0}})
	pages := operand.NewContent(&corev1.ConfigMap{Data: map[string]string{"index.html": "hello"}})
	in := operand.Inputs{
		Image: fixture.Image, Config: operand.NewConfiguration(nginxconf.Files{nginxconf.MainFile: "# main"}),
		Content: &operand.Content{Hash: pages.Hash}, Files: &operand.Content{Hash: copied.Hash},
	}
	return object, in, operand.Files{Config: in.Config.Files, Text: pages.Text, FileText: copied.Text, FileBinary: copied.Binary}
}

// TestForgedConfigMaps verifies that other data under the name of an immutable ConfigMap, which a
// tenant could create, is detected for every kind of ConfigMap. This also applies if only the hash
// in the name is known. A mutable ConfigMap is detected as well.
func TestForgedConfigMaps(t *testing.T) {
	object, in, found := declarationOfFiles()
	for what, failure := range map[string]error{"compared": nil, "hashed": Unusable{errors.New("no copy")}} {
		read := func(context.Context) (operand.Files, error) {
			if failure != nil {
				return operand.Files{}, failure
			}
			return found, nil
		}
		configMaps := []*corev1.ConfigMap{
			operand.DesiredConfigMap(object, in), operand.DesiredContentConfigMap(object, in), operand.DesiredFilesConfigMap(object, in),
		}
		for _, declared := range configMaps {
			t.Run(what+" "+declared.Name, func(t *testing.T) {
				if what == "hashed" {
					declared.Data = nil
				}
				genuine := &contents{object: object, in: in, read: func(context.Context) (operand.Files, error) { return found, nil }}
				live := declared.DeepCopy()
				live.Data, live.BinaryData = nil, nil
				if err := genuine.Fill(t.Context(), live); err != nil {
					t.Fatal(err)
				}
				for name, test := range map[string]struct {
					change func(*corev1.ConfigMap)
					want   bool
				}{
					"genuine":     {func(*corev1.ConfigMap) {}, true},
					"other data":  {func(c *corev1.ConfigMap) { c.Data = map[string]string{nginxconf.MainFile: "# theirs"} }, false},
					"more data":   {func(c *corev1.ConfigMap) { c.Data = map[string]string{"more": "x", nginxconf.MainFile: "# main"} }, false},
					"more binary": {func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"more": {1}} }, false},
					"mutable":     {func(c *corev1.ConfigMap) { c.Immutable = ptr.To(false) }, false},
					"no marker":   {func(c *corev1.ConfigMap) { c.Immutable = nil }, false},
				} {
					now := live.DeepCopy()
					test.change(now)
					got, err := (&contents{object: object, in: in, read: read}).Holds(t.Context(), declared.DeepCopy(), now)
					if err != nil || got != test.want {
						t.Errorf("%s: %t, %v", name, got, err)
					}
				}
			})
		}
	}
}

// TestForgedRecords verifies that a record with another declaration or other files, which a tenant
// could create, is not used. Replicas are not part of a record's name. A record of another release
// is valid.
func TestForgedRecords(t *testing.T) {
	object, in, found := declarationOfFiles()
	object.Spec.Replicas = ptr.To[int32](5)
	genuine := revisionFor(t, object, in)
	raw, err := DataOf(object, in).encode(found)
	if err != nil {
		t.Fatal(err)
	}
	record := func(change func(map[string]any)) *appsv1.ControllerRevision {
		said := map[string]any{}
		if err := json.Unmarshal(raw, &said); err != nil {
			t.Fatal(err)
		}
		change(said)
		out := genuine.DeepCopy()
		if out.Data.Raw, err = json.Marshal(said); err != nil {
			t.Fatal(err)
		}
		return out
	}
	written := genuine.DeepCopy()
	written.Data = runtime.RawExtension{Raw: raw}
	// Decoding the record drops a field that this release does not know.
	later := genuine.DeepCopy()
	text := strings.Replace(string(raw), `"image":`, `"later":1,"image":`, 1)
	later.Data.Raw = []byte(text)
	identity, err := without(later.Data.Raw, []string{"replicas", "autoscaling"}, "files")
	if err != nil {
		t.Fatal(err)
	}
	later.Name = "web-" + operand.ShortHash(identity)
	for name, test := range map[string]struct {
		record *appsv1.ControllerRevision
		want   bool
	}{
		"as it was written":         {written, true},
		"by another release":        {later, true},
		"in another order":          {record(func(map[string]any) {}), true},
		"other replicas":            {record(func(said map[string]any) { said["spec"].(map[string]any)["replicas"] = 7 }), true},
		"another image":             {record(func(said map[string]any) { said["image"] = "theirs" }), false},
		"another configuration":     {record(func(said map[string]any) { said["configHash"] = "0123456789" }), false},
		"another field of the spec": {record(func(said map[string]any) { said["spec"].(map[string]any)["forceRedeploy"] = "x" }), false},
		"nothing":                   {genuine, false},
	} {
		if got := isRecord(test.record); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	kept := DataOf(object, in)
	if !kept.has(found) {
		t.Error("the files are not believed")
	}
	for name, change := range map[string]func(*operand.Files){
		"configuration": func(f *operand.Files) { f.Config = map[string]string{nginxconf.MainFile: "# theirs"} },
		"content":       func(f *operand.Files) { f.Text = map[string]string{"index.html": "theirs"} },
		"files":         func(f *operand.Files) { f.FileText = map[string]string{"a..b.conf": "two"} },
	} {
		forged := found
		change(&forged)
		if kept.has(forged) {
			t.Errorf("other %s is believed", name)
		}
	}
}

// TestSuffix verifies that, after a forgery, all ConfigMaps get names that a client cannot guess.
// The Deployment gets the suffix in the same write that mounts the ConfigMaps. An invalid
// annotation is not used in a name.
func TestSuffix(t *testing.T) {
	object, in, _ := declarationOfFiles()
	before := operand.DesiredDeployment(object, in)
	if _, found := before.Annotations[wellknown.AnnotationContent]; found {
		t.Errorf("annotations %v without a forgery", before.Annotations)
	}
	in.Suffix = operand.NewSuffix()
	if in.Suffix == operand.NewSuffix() {
		t.Error("two suffixes are the same")
	}
	after := operand.DesiredDeployment(object, in)
	if got := operand.SuffixOf(after); got != in.Suffix {
		t.Errorf("the Deployment keeps %q of %q", got, in.Suffix)
	}
	names := func(in operand.Inputs) []string {
		return []string{operand.ConfigName(object, in), operand.ContentName(object, in), operand.FilesName(object, in)}
	}
	raw, err := json.Marshal(after.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(in) {
		if !strings.HasSuffix(name, in.Suffix) || !strings.Contains(string(raw), name) {
			t.Errorf("the Pods do not mount %s", name)
		}
	}
	for _, hostile := range []string{"", "x", "../../x", "0123456", "012345678", "ABCDEF01", "0123456\n"} {
		after.Annotations[wellknown.AnnotationContent] = hostile
		if got := operand.SuffixOf(after); got != "" {
			t.Errorf("%q is a suffix of %q", got, hostile)
		}
	}
	if operand.SuffixOf(nil) != "" {
		t.Error("a suffix of no Deployment")
	}
}
