package lists

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

func readJSON(from io.Reader, each func(raw []byte) error) ([]byte, error) {
	decoder := json.NewDecoder(from)
	if err := expect(decoder, '{'); err != nil {
		return nil, err
	}

	rest := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}

		if field, _ := token.(string); field == "items" {
			err = readItems(decoder, each)
		} else {
			var value json.RawMessage
			err = decoder.Decode(&value)
			rest[field] = value
		}

		if err != nil {
			return nil, err
		}
	}

	if err := expect(decoder, '}'); err != nil {
		return nil, err
	}
	return json.Marshal(rest)
}

func readItems(decoder *json.Decoder, each func(raw []byte) error) error {
	token, err := decoder.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("items are %v, not an array", token)
	}

	var item json.RawMessage
	for decoder.More() {
		err := decoder.Decode(&item)
		if err == nil {
			err = each(item)
		}
		if err != nil {
			return err
		}
	}

	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, delimiter json.Delim) error {
	token, err := decoder.Token()
	if err == io.EOF { //nolint:errorlint // Token returns io.EOF itself
		return io.ErrUnexpectedEOF
	}
	if err == nil && token != delimiter {
		err = fmt.Errorf("%v instead of %v", token, delimiter)
	}
	return err
}

// The response is the prefix and a message runtime.Unknown, whose field raw is the list. A list has
// its metadata in field 1, and an item in each field 2. All fields of both are messages, bytes, or
// texts.
const (
	prefix    = "k8s\x00"
	fieldRaw  = 2
	fieldItem = 2
	// wireBytes is the wire type of messages, bytes, and texts.
	wireBytes = 2
	// maxItem bounds the claimed length of an item. The API server accepts a few MiB.
	maxItem = 64 << 20
)

func readProtobuf(from *bufio.Reader, each func(raw []byte) error) ([]byte, error) {
	rest := make([]byte, len(prefix))
	if _, err := io.ReadFull(from, rest); err != nil {
		return nil, unexpected(err)
	}
	if string(rest) != prefix {
		return nil, fmt.Errorf("it starts with %q instead of %q", rest, prefix)
	}

	hasList := false
	err := readFields(from, func(number, length uint64) (err error) {
		var value []byte
		if number == fieldRaw {
			hasList = true
			value, err = readList(from, length, each)
		} else {
			value, err = readValue(from, length, nil)
		}

		rest = appendField(rest, number, value)
		return err
	})
	if err == nil && !hasList {
		err = io.ErrUnexpectedEOF
	}

	return rest, err
}

func readList(from io.Reader, length uint64, each func(raw []byte) error) ([]byte, error) {
	limited := &io.LimitedReader{R: from, N: int64(length)} //nolint:gosec // a length above int64 reads nothing and fails
	list := bufio.NewReaderSize(limited, bufferSize)
	var rest, item []byte
	err := readFields(list, func(number, length uint64) (err error) {
		if item, err = readValue(list, length, item); err != nil {
			return err
		}
		if number == fieldItem {
			return each(item)
		}

		rest = appendField(rest, number, item)
		return nil
	})
	if err == nil && limited.N != 0 {
		err = io.ErrUnexpectedEOF
	}
	return rest, err
}

// readFields calls a function, which reads the value, for each field up to the end.
func readFields(from io.ByteReader, value func(number, length uint64) error) error {
	for {
		tag, err := binary.ReadUvarint(from)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && tag&7 != wireBytes {
			err = fmt.Errorf("field %d has wire type %d", tag>>3, tag&7)
		}
		if err != nil {
			return err
		}

		length, err := binary.ReadUvarint(from)
		if err != nil {
			return unexpected(err)
		}
		if err := value(tag>>3, length); err != nil {
			return err
		}
	}
}

// readValue reads a value into the buffer, or into a larger one.
func readValue(from io.Reader, length uint64, buffer []byte) ([]byte, error) {
	if length > maxItem {
		return nil, fmt.Errorf("a field has %d bytes", length)
	}

	value := slices.Grow(buffer[:0], int(length))[:length]
	_, err := io.ReadFull(from, value)
	return value, unexpected(err)
}

func appendField(to []byte, number uint64, value []byte) []byte {
	to = binary.AppendUvarint(binary.AppendUvarint(to, number<<3|wireBytes), uint64(len(value)))
	return append(to, value...)
}

// unexpected returns the error of a response that has ended too early instead of io.EOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
