package carried

import (
	"strings"
	"testing"
)

func TestCarriedRecord(t *testing.T) {
	whole := New("2acc7aa682", 3, []byte(`{"spec":{},"image":"nginx:1"}`))
	short := Shorten(whole)
	if Head(whole) != "2acc7aa682-3" || Head(short) != "2acc7aa682-3" {
		t.Errorf("heads %q and %q", Head(whole), Head(short))
	}
	for _, annotation := range []string{whole, short} {
		got, ok := Parse(annotation)
		if !ok || got.Name != "2acc7aa682" || got.Revision != 3 || got.Head != "2acc7aa682-3" || len(got.Hash) != 64 {
			t.Errorf("%q: %+v, %t", annotation, got, ok)
		}
		if data := Data(whole, got.Hash); string(data) != `{"spec":{},"image":"nginx:1"}` {
			t.Errorf("data %q", data)
		}
	}

	record, _ := Parse(whole)
	for name, forged := range map[string]string{
		"other data":     strings.Replace(whole, "nginx:1", "nginx:2", 1),
		"other revision": strings.Replace(whole, "-3", "-4", 1),
		"no data":        "2acc7aa682-3",
		"nothing":        "",
	} {
		if found, _ := Parse(forged); found.Hash == record.Hash || Data(forged, record.Hash) != nil {
			t.Errorf("%s is believed", name)
		}
	}
}

func TestCarriedRecordIsBounded(t *testing.T) {
	if New("2acc7aa682", 1, make([]byte, MaxBytes)) != "" {
		t.Error("a record that is too large is carried")
	}
	for _, hostile := range []string{
		"", " ", "{", "x {", "x-1 short", "-1 " + strings.Repeat("0", 64), "x--1 " + strings.Repeat("0", 64), "x-99999999999999999999 {}",
		strings.Repeat("x", 64) + "-1 {}", "x-1 {" + strings.Repeat("x", MaxBytes) + "}",
	} {
		if got, ok := Parse(hostile); ok {
			t.Errorf("%.80q: %+v", hostile, got)
		}
		if got := Shorten(hostile); len(got) > maxHead+1+64 {
			t.Errorf("%.80q has %d bytes in the cache", hostile, len(got))
		}
	}
}
