package conversion

import (
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
	if err := newOutput(&got).json(value).end(); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var gotValue, wantValue any
	if err := json.Unmarshal(got.Bytes(), &gotValue); err != nil {
		t.Fatalf("%v: %.300s", err, got.Bytes())
	}
	if err := json.Unmarshal(want, &wantValue); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got.String(), `{"\"key\"":"€","a":{"raw":[1, 2]},"b":[1,1.5,true,null,[],{}],"empty":"",`) {
		t.Errorf("%.300s", got.Bytes())
	}
	if err := newOutput(&got).json(make(chan int)).end(); err == nil {
		t.Error("no error of what is no JSON")
	}
}

// TestElements verifies that a list is split at its commas, for any elements.
func TestElements(t *testing.T) {
	for list, want := range map[string][]string{
		`]`: nil, ` ] }`: nil, `1]`: {"1"}, ` {"a":[1,2]} , "],\"," ,[]]x`: {`{"a":[1,2]}`, `"],\","`, "[]"},
		`"\\",2]`: {`"\\"`, "2"}, `1,]`: {"1", ""}, `,1]`: {"", "1"}, `1`: {"error"}, ``: {"error"}, `{"a":1`: {"error"}, `1,"]`: {"1", "error"},
		strings.Repeat(" ", 4<<20) + "]": {"error"},
	} {
		var got []string
		for text, err := range elements(strings.NewReader(list)) {
			if err != nil {
				text = []byte("error")
			}
			got = append(got, string(text))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.30s: %s", list, diff)
		}
	}
}
