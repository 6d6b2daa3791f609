package harness

import "testing"

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must1 is Must for a function that also returns a value: Must1(os.ReadFile(name))(t).
func Must1[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
}
