package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/activity/api/v1"
)

const image = "docker.io/library/busybox:1.36"

// newActivity returns the document's sample.
func newActivity() *v1.Activity {
	return &v1.Activity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "activity-sample", UID: "0001", Generation: 1},
		Spec: v1.ActivitySpec{
			Command:  "sleep 5 && echo done in $PWD as $(id -u) with $GREETING",
			Execuser: "1000",
			Execcwd:  "/tmp",
			Envs:     []string{"GREETING=hello"},
		},
	}
}

// The Pods of Activities are what the files in testdata say; UPDATE_GOLDEN=1 writes them anew.
func TestDesiredPod(t *testing.T) {
	everything := newActivity()
	everything.Spec.Host, everything.Spec.Execuser = "node-1", "1000:2000"
	everything.Spec.Envs = []string{"EMPTY=", "EQUALS=a=b", "DOLLAR=$(GREETING) $$ $HOME"}
	for name, activity := range map[string]*v1.Activity{
		"sample":     newActivity(),
		"everything": everything,
		"command":    {ObjectMeta: newActivity().ObjectMeta, Spec: v1.ActivitySpec{Command: "true"}},
	} {
		got, err := yaml.Marshal(desiredPod(activity, image))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "testdata", "pod-"+name+".yaml")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The name is the same in every pass, another one for another Activity of the same name, and a valid host name.
func TestPodName(t *testing.T) {
	first, again, other := newActivity(), newActivity(), newActivity()
	other.UID = types.UID("0002")
	if podName(first) != podName(again) || podName(first) == podName(other) {
		t.Errorf("names %s, %s, %s", podName(first), podName(again), podName(other))
	}
	for _, name := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 51) + ".b", strings.Repeat("a.", 30) + "b"} {
		activity := newActivity()
		activity.Name = name
		got := podName(activity)
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 || len(got) > longestPodName {
			t.Errorf("%s: %s, %d characters: %v", name, got, len(got), problems)
		}
	}
}

func TestUser(t *testing.T) {
	for execuser, want := range map[string]struct {
		uid, gid *int64
		nonRoot  *bool
	}{
		"":                      {},
		"0":                     {uid: ptr.To[int64](0)},
		"0:0":                   {uid: ptr.To[int64](0), gid: ptr.To[int64](0)},
		"1000":                  {uid: ptr.To[int64](1000), nonRoot: ptr.To(true)},
		"1000:0":                {uid: ptr.To[int64](1000), gid: ptr.To[int64](0), nonRoot: ptr.To(true)},
		"2147483647:2147483647": {uid: ptr.To[int64](2147483647), gid: ptr.To[int64](2147483647), nonRoot: ptr.To(true)},
	} {
		uid, gid := user(execuser)
		if !ptr.Equal(uid, want.uid) || !ptr.Equal(gid, want.gid) || !ptr.Equal(nonRoot(uid), want.nonRoot) {
			t.Errorf("%q: %v %v %v", execuser, uid, gid, nonRoot(uid))
		}
	}
}

// The finalizer is there from the beginning: without it a Pod could come and go unseen.
func TestPodIsHeld(t *testing.T) {
	pod := desiredPod(newActivity(), image)
	if diff := cmp.Diff([]string{finalizer}, pod.Finalizers); diff != "" {
		t.Error(diff)
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Activity", Name: "activity-sample", Controller: ptr.To(true)}}
	if got := heldFor(pod); got != nil {
		t.Errorf("a Pod that is not deleted is held for %q", got)
	}
	pod.DeletionTimestamp = ptr.To(metav1.Now())
	if diff := cmp.Diff([]string{"activity-sample"}, heldFor(pod)); diff != "" {
		t.Error(diff)
	}
	pod.Finalizers = []string{"example.com/other"}
	if got := heldFor(pod); got != nil {
		t.Errorf("a Pod that was let go is held for %q", got)
	}
	if got := heldFor(&corev1.Pod{}); got != nil {
		t.Errorf("a foreign Pod is held for %q", got)
	}
}
