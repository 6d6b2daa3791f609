package operand

import "testing"

// TestDigest verifies that each change of a Secret changes the digest, including a text that moves
// to another key.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, files := range []map[string]string{{}, {"a": ""}, {"a": "b"}, {"ab": ""}, {"a": "b", "c": ""}, {"a": "bc"}, {"a": " ", "b": ""}} {
		if seen[Digest(files)] {
			t.Errorf("%v has the digest of another", files)
		}
		seen[Digest(files)] = true
	}
}
