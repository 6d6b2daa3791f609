package conversion

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOutput verifies that output in pieces equals the output of json.Marshal.
func TestOutput(t *testing.T) {
	long := strings.Repeat("x", maxPiece-1)
	value := map[string]any{
		"b": []any{int64(1), 1.5, true, nil, []any{}, map[string]any{}}, "a": json.RawMessage(`{"raw":[1, 2]}`),
		"text": `"<&>" \ ` + "\n\x00\u2028", "long": long + "ü" + long + `"` + long + "\"\"", "empty": "", "\"key\"": "€",
		"split": strings.Repeat("€", maxPiece),
	}
	var got bytes.Buffer
	if err := (output{bufio.NewWriter(&got)}).json(value).Flush(); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parseJSON(t, string(want)), parseJSON(t, got.String())); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got.String(), `{"\"key\"":"€","a":{"raw":[1, 2]},"b":[1,1.5,true,null,[],{}],"empty":"",`) {
		t.Errorf("%.300s", got.Bytes())
	}
}
