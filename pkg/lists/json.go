package lists

import (
	"encoding/json"
	"fmt"
	"io"
)

// readJSON calls a function with each item of a list, and returns the list without items.
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

// readItems reads the value of the field items: an array, or null.
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

// expect reads a delimiter.
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
