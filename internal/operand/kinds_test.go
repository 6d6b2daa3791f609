package operand

import (
	"reflect"
	"testing"
)

// TestNewOfEachKind verifies that New supports each kind of child, and no other kind.
func TestNewOfEachKind(t *testing.T) {
	object := fullObject()
	for _, child := range Desired(object, newInputs(t, object, object.Spec.Config.Inline, false)) {
		kind := child.GetObjectKind().GroupVersionKind().Kind
		if got := New(kind); got == nil || reflect.TypeOf(got) != reflect.TypeOf(child) {
			t.Errorf("New(%q) returns %T", kind, got)
		}
	}
	for _, kind := range DispensableKinds() {
		if New(kind) == nil {
			t.Errorf("New(%q) returns nil", kind)
		}
	}
	if New("Secret") != nil {
		t.Error("a Secret is a child")
	}
}
