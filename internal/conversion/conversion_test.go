package conversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

func onlyPort(number int32) v1alpha2.Port {
	return v1alpha2.Port{Name: "http", Port: number, Protocol: "TCP"}
}

func port(number int32) v1alpha1.NginxOperatorSpec {
	return v1alpha1.NginxOperatorSpec{Port: &number}
}

// TestForms verifies each case in both directions.
func TestForms(t *testing.T) {
	for name, test := range map[string]struct {
		hub   v1alpha2.NginxOperatorSpec
		spoke v1alpha1.NginxOperatorSpec
		kept  string
	}{
		"empty spec":   {spoke: port(8080), kept: `{"ports":[]}`},
		"another port": {hub: v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{onlyPort(80)}}, spoke: port(80)},
		"default port that was given": {
			hub: v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{onlyPort(8080)}}, spoke: port(8080),
		},
		"port of another name": {
			hub: v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "web", Port: 80, Protocol: "TCP"}}}, spoke: port(80),
			kept: `{"ports":[{"name":"web","port":80,"protocol":"TCP"}]}`,
		},
		"port without a protocol": {
			hub: v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{{Name: "http", Port: 80}}}, spoke: port(80),
			kept: `{"ports":[{"name":"http","port":80}]}`,
		},
		"two ports": {
			hub: v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{onlyPort(80), {Name: "b", Port: 81, Protocol: "TCP"}}}, spoke: port(80),
			kept: `{"ports":[{"name":"http","port":80,"protocol":"TCP"},{"name":"b","port":81,"protocol":"TCP"}]}`,
		},
		"what both know": {
			hub:   v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](0), ForceRedeploy: "now"},
			spoke: v1alpha1.NginxOperatorSpec{Port: ptr.To[int32](8080), Replicas: ptr.To[int32](0), ForceRedeploy: "now"},
			kept:  `{"ports":[]}`,
		},
		"no plain HTTP": {
			hub:   v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{}, TLS: []v1alpha2.TLS{{SecretName: "cert"}}},
			spoke: port(8080), kept: `{"ports":null,"tls":[{"secretName":"cert"}]}`,
		},
		"empty structures": {
			hub: v1alpha2.NginxOperatorSpec{
				Service: &v1alpha2.Service{}, PodTemplate: &v1alpha2.PodTemplate{}, Resources: &corev1.ResourceRequirements{},
			},
			spoke: port(8080), kept: `{"podTemplate":{},"ports":[],"resources":{},"service":{}}`,
		},
		"text that HTML would escape": {
			hub:   v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "if ($a = \"<&>\") {\n}"}},
			spoke: port(8080), kept: `{"config":{"inline":"if ($a = \"<&>\") {\n}"},"ports":[]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoke := down(t, &v1alpha2.NginxOperator{Spec: test.hub})
			want := &v1alpha1.NginxOperator{Spec: test.spoke}
			if test.kept != "" {
				want.Annotations = map[string]string{wellknown.AnnotationV1alpha2: test.kept}
			}
			if diff := cmp.Diff(want, spoke); diff != "" {
				t.Errorf("down (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(&v1alpha2.NginxOperator{Spec: test.hub}, up(t, want)); diff != "" {
				t.Errorf("up (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDamagedAnnotation(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		want     v1alpha2.NginxOperatorSpec
		readable bool
	}{
		"empty":               {text: "", readable: true},
		"null":                {text: "null", readable: true},
		"no JSON":             {text: "{tls"},
		"cut off":             {text: `{"image":"a","tls":[{"secretNa`},
		"a list":              {text: "[]"},
		"a wrong type":        {text: `{"image":"a","ports":"80"}`},
		"a wrong quantity":    {text: `{"image":"a","resources":{"limits":{"cpu":"many"}}}`},
		"an endless quantity": {text: `{"image":"a","resources":{"limits":{"cpu":"1e-1000000000"}}}`},
		"an endless quantity, given twice": {
			text: `{"image":"a","resources":{"limits":{"cpu":"1e-1000000000"}},"resources":{}}`,
			want: v1alpha2.NginxOperatorSpec{Image: "a", Resources: &corev1.ResourceRequirements{}},
		},
		"deep":          {text: `{"image":"a","x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}"},
		"a field twice": {text: `{"image":"b","image":"a"}`, want: v1alpha2.NginxOperatorSpec{Image: "a"}},
		// The fields of v1alpha1 override the annotation.
		"replicas": {text: `{"image":"a","replicas":7,"forceRedeploy":"x"}`, want: v1alpha2.NginxOperatorSpec{Image: "a"}, readable: true},
	} {
		t.Run(name, func(t *testing.T) {
			spoke := &v1alpha1.NginxOperator{Spec: port(80)}
			spoke.Annotations = map[string]string{wellknown.AnnotationV1alpha2: test.text, "mine": "1"}
			want := &v1alpha2.NginxOperator{Spec: test.want}
			want.Spec.Ports = []v1alpha2.Port{onlyPort(80)}
			want.Annotations = map[string]string{"mine": "1"}
			if !test.readable {
				want.Annotations[wellknown.AnnotationV1alpha2Unreadable] = test.text
			}
			hub := up(t, spoke)
			if diff := cmp.Diff(want, hub); diff != "" {
				t.Error(diff)
			}
			if err := Check(test.text); (err == nil) != test.readable {
				t.Errorf("check: %v", err)
			}
			// The next write of the object, usually the operator's status update, must preserve the
			// text.
			if got := down(t, hub).Annotations[wellknown.AnnotationV1alpha2Unreadable]; !test.readable && got != test.text {
				t.Errorf("the damaged text is lost, got %q", got)
			}
		})
	}
}

// TestTextStays verifies that the values of a manifest are read back unchanged, even if the Go
// types would encode them differently. During an upgrade, after the new CRD and before the new Pods,
// this release converts objects with fields of the next release.
func TestTextStays(t *testing.T) {
	for _, spec := range []string{
		`{}`,
		`{"paused":false}`,
		`{"image":"a","later":{"on":true}}`,
		`{"forceRedeploy":"","replicas":0}`,
		`{"resources":{"limits":{"cpu":"0.5","memory":1073741824},"requests":{}}}`,
		`{"podTemplate":{"labels":{},"tolerations":[]},"service":{"annotations":{"a":""}}}`,
		`{"ports":[{"name":"http","port":80}]}`,
	} {
		raw := `{"apiVersion":"operator.example.com/v1alpha2","metadata":{"name":"web"},` +
			`"spec":` + spec + `,"status":{"x":[{"y":null}]}}`
		object := &unstructured.Unstructured{Object: parseJSON(t, raw)}
		ToV1alpha1(object)
		ToV1alpha2(object)
		if diff := cmp.Diff(parseJSON(t, raw), object.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", spec, diff)
		}
	}
}

// TestPartsOfObjects verifies that a converted part of an object has metadata. For an apply, the
// API server converts parts of objects, and rejects an answer without metadata. An annotation that
// a user copies to v1alpha2 has no meaning there.
func TestPartsOfObjects(t *testing.T) {
	const (
		kept = `{"metadata":{"annotations":{"operator.example.com/v1alpha2":` +
			`"{\"image\":\"a\",\"ports\":[{\"name\":\"web\"}]}"}}`
		noPorts = `{"metadata":{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[]}"}}`
	)
	for _, test := range []struct {
		convert    func(*unstructured.Unstructured)
		have, want string
	}{
		{ToV1alpha2, `{}`, `{"metadata":{}}`},
		{ToV1alpha2, `{"spec":{}}`, `{"metadata":{},"spec":{}}`},
		{ToV1alpha2, `{"status":{}}`, `{"metadata":{},"status":{}}`},
		{ToV1alpha2, kept + `}`, `{"metadata":{},"spec":{"image":"a","ports":[{"name":"web","port":8080}]}}`},
		{ToV1alpha1, `{}`, noPorts + `,"spec":{"port":8080}}`},
		{ToV1alpha1, `{"spec":{"replicas":2}}`, noPorts + `,"spec":{"port":8080,"replicas":2}}`},
		{ToV1alpha1, `{"spec":{"image":"a","ports":[{"name":"web"}]}}`, kept + `,"spec":{"port":8080}}`},
		{
			ToV1alpha1, kept + `,"spec":{"ports":[{"name":"http","port":80,"protocol":"TCP"}]}}`,
			`{"metadata":{},"spec":{"port":80}}`,
		},
	} {
		object := &unstructured.Unstructured{Object: parseJSON(t, test.have)}
		test.convert(object)
		delete(object.Object, "apiVersion")
		if diff := cmp.Diff(parseJSON(t, test.want), object.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.have, diff)
		}
	}
}

func parseJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLargestConfigurationFits verifies that a configuration of the schema's maximum size fits into
// the annotation of a v1alpha1 object.
func TestLargestConfigurationFits(t *testing.T) {
	line := "location = /a { return 200 \"<b>\\n</b>\"; }\n"
	config := &v1alpha2.Config{Inline: strings.Repeat(line, 65536/len(line))}
	spoke := down(t, &v1alpha2.NginxOperator{Spec: v1alpha2.NginxOperatorSpec{Config: config}})
	const limit = 256 << 10 // the API server's limit for all annotations of an object
	if size := len(spoke.Annotations[wellknown.AnnotationV1alpha2]); size < 65536 || size > limit/2 {
		t.Errorf("%d bytes are kept", size)
	}
}

func TestSame(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{"image":"a"}`, `{"image":"a"}`, true},
		{`{"image":"a"}`, `{ "image": "a" }`, true},
		{`{"resources":{"limits":{"cpu":"1"}}}`, `{"resources":{"limits":{"cpu":"1000m"}}}`, true},
		{"", "{}", true},
		{`{"ports":[]}`, "{}", true},
		{`{"ports":null}`, "{}", false},
		{`{"ports":null}`, `{"ports":[]}`, false},
		{`{"image":"a"}`, `{"image":"b"}`, false},
		{`{"image":"a"}`, "", false},
		{`{`, `{`, true},
		{`{`, `[`, false},
	} {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %t", test.a, test.b, got)
		}
	}
}
