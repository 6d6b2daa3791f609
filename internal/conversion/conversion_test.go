package conversion

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// TestV1alpha1WithoutPort converts an object as a client sends it, before the API server sets
// defaults.
func TestV1alpha1WithoutPort(t *testing.T) {
	if diff := cmp.Diff(&v1alpha2.NginxOperator{}, up(t, &v1alpha1.NginxOperator{})); diff != "" {
		t.Error(diff)
	}
	kept := &v1alpha1.NginxOperator{}
	kept.Annotations = map[string]string{wellknown.AnnotationV1alpha2: `{"ports":[{"name":"web","port":80,"protocol":"TCP"}]}`}
	if diff := cmp.Diff([]v1alpha2.Port{{Name: "web", Port: 8080, Protocol: "TCP"}}, up(t, kept).Spec.Ports); diff != "" {
		t.Error(diff)
	}
}

func TestV1alpha1EditWins(t *testing.T) {
	web, other := v1alpha2.Port{Name: "web", Port: 80, Protocol: "TCP"}, v1alpha2.Port{Name: "other", Port: 81, Protocol: "TCP"}
	tls := []v1alpha2.TLS{{SecretName: "cert", Port: ptr.To[int32](443)}}
	moved := web
	for name, test := range map[string]struct {
		ports []v1alpha2.Port
		port  int32
		want  []v1alpha2.Port
	}{
		"no plain HTTP":           {[]v1alpha2.Port{}, 8080, []v1alpha2.Port{}},
		"no plain HTTP until now": {[]v1alpha2.Port{}, 82, []v1alpha2.Port{onlyPort(82)}},
		"no port given":           {nil, 82, []v1alpha2.Port{onlyPort(82)}},
		"the first of two": {
			[]v1alpha2.Port{web, other}, 82, []v1alpha2.Port{{Name: "web", Port: 82, Protocol: "TCP"}, other},
		},
		"back to the default": {[]v1alpha2.Port{web}, 8080, []v1alpha2.Port{{Name: "web", Port: 8080, Protocol: "TCP"}}},
		"no change":           {[]v1alpha2.Port{web, other}, 80, []v1alpha2.Port{web, other}},
		"to that of another port (admission)": {
			[]v1alpha2.Port{web, other}, 81, []v1alpha2.Port{{Name: "web", Port: 81, Protocol: "TCP"}, other},
		},
		"to that of TLS (admission)": {[]v1alpha2.Port{moved}, 443, []v1alpha2.Port{{Name: "web", Port: 443, Protocol: "TCP"}}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := v1alpha2.NginxOperatorSpec{Ports: test.ports, TLS: tls, Replicas: ptr.To[int32](1), ForceRedeploy: "a"}
			spoke := down(t, &v1alpha2.NginxOperator{Spec: hub})
			spoke.Spec = v1alpha1.NginxOperatorSpec{Port: &test.port, Replicas: ptr.To[int32](5), ForceRedeploy: "b"}
			want := v1alpha2.NginxOperatorSpec{Ports: test.want, TLS: tls, Replicas: ptr.To[int32](5), ForceRedeploy: "b"}
			if diff := cmp.Diff(want, up(t, spoke).Spec); diff != "" {
				t.Error(diff)
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

// TestUnknownFieldsAreKept verifies that unknown fields are preserved. During an upgrade, after the
// new CRD and before the new Pods, this release converts objects with fields of the next release.
func TestUnknownFieldsAreKept(t *testing.T) {
	const kept = `{"image":"a","later":{"on":true},"ports":[]}`
	spoke := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{wellknown.AnnotationV1alpha2: kept}},
		"spec":     map[string]any{"port": int64(8080)},
	}}
	hub, again := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	if err := errors.Join(ToV1alpha2(spoke, hub), ToV1alpha1(hub, again), Check(kept)); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"image": "a", "later": map[string]any{"on": true}}
	if diff := cmp.Diff(want, hub.Object["spec"]); diff != "" || hub.GetAnnotations() != nil {
		t.Errorf("annotations %v, spec (-want +got)\n%s", hub.GetAnnotations(), diff)
	}
	if got := again.GetAnnotations()[wellknown.AnnotationV1alpha2]; got != kept {
		t.Errorf("kept %s", got)
	}
}

// TestAnnotationMeansNothingAtV1alpha2 verifies that the spec overrides the annotation. A user who
// copies a v1alpha1 manifest to v1alpha2 may keep the annotation.
func TestAnnotationMeansNothingAtV1alpha2(t *testing.T) {
	hub := &v1alpha2.NginxOperator{Spec: v1alpha2.NginxOperatorSpec{Image: "b"}}
	hub.Annotations = map[string]string{wellknown.AnnotationV1alpha2: `{"image":"a"}`}
	if got := up(t, down(t, hub)).Spec.Image; got != "b" {
		t.Errorf("image %q", got)
	}
	hub.Spec = v1alpha2.NginxOperatorSpec{Ports: []v1alpha2.Port{onlyPort(80)}}
	if got := down(t, hub).Annotations; got != nil {
		t.Errorf("annotations %v", got)
	}
}

// TestTextStays verifies that the values of a manifest are read back unchanged, even if the Go
// types would encode them differently.
func TestTextStays(t *testing.T) {
	for _, spec := range []string{
		`{}`,
		`{"paused":false}`,
		`{"forceRedeploy":"","replicas":0}`,
		`{"resources":{"limits":{"cpu":"0.5","memory":1073741824},"requests":{}}}`,
		`{"podTemplate":{"labels":{},"tolerations":[]},"service":{"annotations":{"a":""}}}`,
		`{"ports":[{"name":"http","port":80}]}`,
	} {
		src := &unstructured.Unstructured{}
		back := &unstructured.Unstructured{Object: map[string]any{}}
		dst := &unstructured.Unstructured{Object: map[string]any{}}
		raw := `{"apiVersion":"","kind":"","metadata":{"name":"web"},"spec":` + spec + `,"status":{"x":[{"y":null}]}}`
		src.Object = parseJSON(t, raw)
		if err := ToV1alpha1(src, dst); err != nil {
			t.Fatal(err)
		}
		if err := ToV1alpha2(dst, back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parseJSON(t, raw), back.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", spec, diff)
		}
	}
}

// TestPartsOfObjects verifies that a converted part of an object has metadata. For an apply, the
// API server converts parts of objects, and rejects an answer without metadata.
func TestPartsOfObjects(t *testing.T) {
	for _, test := range []struct {
		convert    func(src, dst *unstructured.Unstructured) error
		have, want string
	}{
		{ToV1alpha2, `{}`, `{"metadata":{}}`},
		{ToV1alpha2, `{"spec":{}}`, `{"metadata":{},"spec":{}}`},
		{ToV1alpha2, `{"status":{}}`, `{"metadata":{},"status":{}}`},
		{ToV1alpha1, `{}`, `{"metadata":{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[]}"}},"spec":{"port":8080}}`},
		{
			ToV1alpha1, `{"spec":{"replicas":2}}`,
			`{"metadata":{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[]}"}},"spec":{"port":8080,"replicas":2}}`,
		},
		{
			ToV1alpha1, `{"spec":{"ports":[{"name":"http"}]}}`,
			`{"metadata":{"annotations":{"operator.example.com/v1alpha2":"{\"ports\":[{\"name\":\"http\"}]}"}},"spec":{"port":8080}}`,
		},
	} {
		dst := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a/b", "kind": "C", "spec": map[string]any{"image": "stale"}}}
		if err := test.convert(&unstructured.Unstructured{Object: parseJSON(t, test.have)}, dst); err != nil {
			t.Fatal(err)
		}
		want := parseJSON(t, test.want)
		want["apiVersion"], want["kind"] = "a/b", "C"
		if diff := cmp.Diff(want, dst.Object); diff != "" {
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

func TestNothingIsShared(t *testing.T) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fullObject(1))
	if err != nil {
		t.Fatal(err)
	}
	hub := &unstructured.Unstructured{Object: fields}
	spoke, again := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	if err := errors.Join(ToV1alpha1(hub, spoke), ToV1alpha2(spoke, again)); err != nil {
		t.Fatal(err)
	}
	hubBefore, spokeBefore := hub.DeepCopy(), spoke.DeepCopy()
	overwrite(again.Object)
	if diff := cmp.Diff(spokeBefore, spoke); diff != "" {
		t.Error(diff)
	}
	overwrite(spoke.Object)
	if diff := cmp.Diff(hubBefore, hub); diff != "" {
		t.Error(diff)
	}
}

// overwrite changes every value within a JSON value.
func overwrite(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			overwrite(child)
			value[key] = "changed"
		}
	case []any:
		for i, child := range value {
			overwrite(child)
			value[i] = "changed"
		}
	}
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
