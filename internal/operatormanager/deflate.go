package operatormanager

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"
)

// Objects of users and of the operator repeat themselves: names of ports, words of a configuration.
// Those that are slightly too large for the cache are stored compressed, and need no read from the
// API server.

const (
	// maxDeflated is the maximum size in bytes of an encoding that is compressed. It bounds the time to
	// read one.
	maxDeflated = 12 << 10
	// deflated is the first byte of a compressed encoding. No protocol buffer and no CBOR of an object
	// starts with it.
	deflated = 0
)

// deflaters has writers, because each one takes a megabyte.
var deflaters = sync.Pool{New: func() any {
	out, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	return out
}}

// deflate compresses an encoding.
func deflate(raw []byte) []byte {
	out := bytes.NewBuffer([]byte{deflated})
	writer := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(writer)
	writer.Reset(out)
	_, _ = writer.Write(raw) // a buffer returns no error
	_ = writer.Close()
	return out.Bytes()
}

// isDeflated reports whether an encoding is compressed.
func isDeflated(raw string) bool { return raw != "" && raw[0] == deflated }

// inflate reverses deflate. It returns an encoding that is not compressed unchanged.
func inflate(raw string) ([]byte, error) {
	if !isDeflated(raw) {
		return []byte(raw), nil
	}
	return io.ReadAll(flate.NewReader(strings.NewReader(raw[1:])))
}
