package resolve

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestKeysOfSecrets verifies that the hash of a Secret's key cannot be guessed without the Secret,
// and does not depend on other keys.
func TestKeysOfSecrets(t *testing.T) {
	secret := func(uid types.UID, kind corev1.SecretType, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid}, Type: kind, Data: map[string][]byte{"a": []byte(text), "b": []byte(uid)}}
	}
	one := keyedIn(secret("u-1", corev1.SecretTypeOpaque, "one"), "a")
	if !one.exists || one.refused != "" {
		t.Errorf("%+v", one)
	}
	for name, other := range map[string]*corev1.Secret{
		"content": secret("u-1", corev1.SecretTypeOpaque, "two"), "Secret": secret("u-2", corev1.SecretTypeOpaque, "one"),
	} {
		if keyedIn(other, "a").digest == one.digest {
			t.Errorf("another %s has the same digest", name)
		}
	}
	if got := keyedIn(secret("u-1", corev1.SecretTypeTLS, "one"), "a"); got != one {
		t.Errorf("%+v, want %+v", got, one)
	}
	if keyedIn(secret("u-1", corev1.SecretTypeOpaque, "one"), "c").exists {
		t.Error("a key that is not there is found")
	}
	if got := keyedIn(secret("u-1", corev1.SecretTypeServiceAccountToken, "one"), "a"); got.refused == "" || got.digest != "" {
		t.Errorf("%+v", got)
	}
}
