package record

import "errors"

// Unusable is the error for a record whose data cannot be used. A retry does not help.
type Unusable struct {
	// Err is the cause.
	Err error
}

// Error returns the message of the cause.
func (e Unusable) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e Unusable) Unwrap() error { return e.Err }

// IsUnusable reports whether an error is, or wraps, an Unusable.
func IsUnusable(err error) bool { return errors.As(err, &Unusable{}) }
