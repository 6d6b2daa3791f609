package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNameservers verifies which resolv.conf has the name servers of the cluster, and that the flag
// overrides it.
func TestNameservers(t *testing.T) {
	const search = "search shop.svc.cluster.local svc.cluster.local cluster.local\n"
	for text, want := range map[string][]string{
		search + "nameserver 10.96.0.10\noptions ndots:5\n":                               {"10.96.0.10"},
		"nameserver 2001:db8::a\n# nameserver 192.0.2.1\nnameserver\n" + search:           {"2001:db8::a"},
		search + "nameserver 10.96.0.10\n  nameserver\tfd00::a  \nnameserver dns.example": {"10.96.0.10", "fd00::a"},
		"search example.com\nnameserver 192.0.2.1\n":                                      nil, // of a node
		"nameserver 127.0.0.53\noptions edns0\n":                                          nil,
		"":                                                                                nil,
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, (&Options{}).Nameservers(file)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if found := (&Options{}).Nameservers("/nowhere"); found != nil {
		t.Error(found)
	}

	got, err := parse([]string{"--nginx-image=nginx:1", "--cluster-nameservers=10.0.0.10,[fd00::a]:53,fd00::b"}, nil)
	want := []string{"10.0.0.10", "[fd00::a]:53", "fd00::b"}
	if diff := cmp.Diff(want, got.Nameservers("/nowhere")); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = parse([]string{"--nginx-image=nginx:1", "--cluster-nameservers=10.0.0.10,a;"}, nil)
	if err == nil || !strings.Contains(err.Error(), `--cluster-nameservers has "a;", must be an IP address`) {
		t.Error(err)
	}
}
