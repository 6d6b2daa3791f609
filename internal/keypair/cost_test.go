//go:build bench

package keypair

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/example/nginx-operator/test/harness/cost"
)

func TestCosts(t *testing.T) {
	certificate, private := pair(t, ec(t))
	rsa := func(bits, primes int) []byte { return block("RSA PRIVATE KEY", hostile(t, bits, primes)) }
	var names []string
	for i := range 9_000 {
		names = append(names, fmt.Sprintf("%d.example.com", i))
	}
	many, other := pair(t, ec(t), names...)
	cases := map[string]cost.Case{}
	for name, both := range map[string][2][]byte{
		"two primes":  {certificate, rsa(maxKeyBits, 0)},
		"four primes": {certificate, rsa(maxKeyBits, 2)},
		"a large key": {certificate, rsa(100_000, 0)},
		"a chain":     {bytes.Repeat(certificate, maxBlocks), private},
		"names":       {many, other},
		"another key": {certificate, other},
		"text":        {bytes.Repeat([]byte("x"), maxBytes), private},
	} {
		cases[name] = cost.Of(func() { _, _ = Check(both[0], both[1]) })
	}
	cost.Check(t, "key", cases)
}
