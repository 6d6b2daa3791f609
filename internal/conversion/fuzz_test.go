package conversion

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

const rounds = 2_500

// newFuzzer returns a Filler that sets all fields of an object of either version to random values,
// as a client could. Its seed is fixed, so failures are reproducible.
func newFuzzer() *randfill.Filler {
	ports := func(serializer.CodecFactory) []any {
		return []any{
			// v1alpha1 can rarely express random ports, but the conversion depends on ports that it
			// can express.
			func(spec *v1alpha2.NginxOperatorSpec, c randfill.Continue) {
				c.FillNoCustom(spec)
				switch c.Int31n(5) {
				case 0:
					spec.Ports = []v1alpha2.Port{onlyPort(c.Int31n(65535) + 1)}
				case 1:
					spec.Ports = []v1alpha2.Port{onlyPort(v1alpha2.DefaultPort)}
				case 2:
					spec.Ports = append(spec.Ports, v1alpha2.Port{Name: "other", Port: v1alpha2.DefaultPort})
				case 3:
					spec.Ports = []v1alpha2.Port{}
				}
				if c.Bool() {
					*spec = v1alpha2.NginxOperatorSpec{Replicas: spec.Replicas, Ports: spec.Ports, ForceRedeploy: spec.ForceRedeploy}
				}
			},
			// The schema sets this default, so a stored v1alpha1 object always has a port.
			func(spec *v1alpha1.NginxOperatorSpec, c randfill.Continue) {
				c.FillNoCustom(spec)
				if spec.Port == nil {
					spec.Port = ptr.To(v1alpha1.DefaultPort)
				}
			},
		}
	}
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, ports), rand.NewSource(1), codecs)
}

// equal fails the test unless the values are equal for the API server, which does not distinguish
// nil from empty lists and maps.
func equal(t testing.TB, round int, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("round %d (-want +got)\n%s", round, cmp.Diff(want, got))
	}
}

func up(t testing.TB, in *v1alpha1.NginxOperator) *v1alpha2.NginxOperator {
	t.Helper()
	return convert(t, in, &v1alpha2.NginxOperator{}, ToV1alpha2)
}

func down(t testing.TB, in *v1alpha2.NginxOperator) *v1alpha1.NginxOperator {
	t.Helper()
	return convert(t, in, &v1alpha1.NginxOperator{}, ToV1alpha1)
}

func convert[D runtime.Object](t testing.TB, in runtime.Object, out D, function func(*unstructured.Unstructured)) D {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: fields}
	function(object)
	delete(object.Object, "apiVersion")
	delete(object.Object, "kind")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, out, true); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFuzzFromV1alpha2(t *testing.T) {
	t.Parallel()
	f := newFuzzer()
	for round := range rounds {
		hub := &v1alpha2.NginxOperator{}
		f.Fill(hub)
		hub.TypeMeta.Reset()
		spoke := down(t, hub)
		back := up(t, spoke)
		equal(t, round, hub, back)
		if !defaults.SameSpec(&hub.Spec, &back.Spec) {
			t.Fatalf("round %d: ports %#v became %#v", round, hub.Spec.Ports, back.Spec.Ports)
		}

		// A client changes all v1alpha1 fields. The other fields must stay.
		var edit v1alpha1.NginxOperatorSpec
		f.Fill(&edit)
		spoke.Spec = edit
		want := hub.DeepCopy()
		want.Spec.Replicas, want.Spec.ForceRedeploy = edit.Replicas, edit.ForceRedeploy
		want.Spec.Ports = slices.Clone(defaults.Ports(&want.Spec))
		switch {
		case len(want.Spec.Ports) > 0:
			want.Spec.Ports[0].Port = *edit.Port
		case *edit.Port != v1alpha1.DefaultPort:
			want.Spec.Ports = []v1alpha2.Port{onlyPort(*edit.Port)}
		}
		edited := up(t, spoke)
		again := down(t, edited)
		equal(t, round, edit, again.Spec)
		equal(t, round, edited, up(t, again))
		// No ports and the default port are equivalent, so an edit can result in either.
		edited.Spec.Ports = defaults.Ports(&edited.Spec)
		equal(t, round, want, edited)
	}
}

func TestFuzzFromV1alpha1(t *testing.T) {
	t.Parallel()
	f, kept := newFuzzer(), 0
	for round := range rounds {
		spoke := &v1alpha1.NginxOperator{}
		f.Fill(spoke)
		spoke.TypeMeta.Reset()
		if round%2 == 0 {
			var spec v1alpha2.NginxOperatorSpec
			f.Fill(&spec)
			from := down(t, &v1alpha2.NginxOperator{Spec: spec})
			if text, found := from.Annotations[wellknown.AnnotationV1alpha2]; found {
				kept++
				if spoke.Annotations == nil {
					spoke.Annotations = map[string]string{}
				}
				spoke.Annotations[wellknown.AnnotationV1alpha2] = text
				spoke.Spec.Port = from.Spec.Port
			}
		}
		hub := up(t, spoke)
		if _, found := hub.Annotations[wellknown.AnnotationV1alpha2]; found {
			t.Fatalf("round %d: the v1alpha2 form shows the annotation", round)
		}
		equal(t, round, spoke, down(t, hub))
	}
	if kept < rounds/4 {
		t.Errorf("only %d of %d objects had kept data", kept, rounds)
	}
}
