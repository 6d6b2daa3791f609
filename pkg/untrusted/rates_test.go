package untrusted

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRates verifies that each address has a burst and a rate of its own.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := NewRates(2, 5, 10, time.Minute)
		allowed := func(address string) (count int) {
			for range 20 {
				if rates.Allow(address) {
					count++
				}
			}
			return count
		}
		if a, b := allowed("a"), allowed("b"); a != 5 || b != 5 {
			t.Errorf("%d and %d are allowed at once, want 5", a, b)
		}
		time.Sleep(2 * time.Second)
		if a := allowed("a"); a != 4 {
			t.Errorf("%d are allowed after 2 seconds, want 4", a)
		}
	})
}
