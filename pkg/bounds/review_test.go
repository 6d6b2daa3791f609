package bounds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/example/nginx-operator/pkg/bounds/boundstest"
)

func TestReadReview(t *testing.T) {
	for name, test := range map[string]struct{ body, envelope, object, old string }{
		"no request": {body: `{"kind":"a"}`, envelope: `{"kind":"a"}`},
		"an object": {
			body: ` {"request":{"object": {"a":[1,2]} ,"uid":"1"}}`, envelope: ` {"request":{"object":null,"uid":"1"}}`, object: `{"a":[1,2]}`,
		},
		"two objects": {
			body: `{"request":{"object":{},"oldObject":[]}}`, envelope: `{"request":{"object":null,"oldObject":null}}`, object: "{}", old: "[]",
		},
		"null": {
			body: `{"request":{"object":null,"oldObject":{}}}`, envelope: `{"request":{"object":null,"oldObject":null}}`, old: "{}",
		},
		"one twice": {body: `{"request":{"object":1,"object":2}}`, envelope: `{"request":{"object":null,"object":null}}`, object: "2"},
		"object within": {
			body: `{"request":{"object":{"object":{"object":1}}}}`, envelope: `{"request":{"object":null}}`,
			object: `{"object":{"object":1}}`,
		},
		"text that quotes": {
			body:     `{"request":{"uid":"\"object\":{","object":{"a":"}\\\",\"uid\":"}}}`,
			envelope: `{"request":{"uid":"\"object\":{","object":null}}`, object: `{"a":"}\\\",\"uid\":"}`,
		},
		"object elsewhere": {body: `{"object":{"a":1},"other":{"object":{}}}`, envelope: `{"object":{"a":1},"other":{"object":{}}}`},
		"object deeper":    {body: `{"request":{"a":{"object":{}}}}`, envelope: `{"request":{"a":{"object":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadReview([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			want := [3]string{test.envelope, test.object, test.old}
			if diff := cmp.Diff(want, [3]string{string(got.Envelope), string(got.Object), string(got.OldObject)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadReviewRefuses verifies that ReadReview rejects small reviews that are expensive to
// decode, at almost no cost. Any Pod can post such a review.
func TestReadReviewRefuses(t *testing.T) {
	fill := func(before, element, after string) string {
		return before + strings.Repeat(element+",", (MaxReviewBytes-len(before)-len(after))/(len(element)+1)-1) + element + after
	}
	for name, body := range map[string]string{
		"causes of a response":  fill(`{"response":{"status":{"details":{"causes":[`, "{}", `]}}}}`),
		"warnings":              fill(`{"response":{"warnings":[`, `""`, `]}}`),
		"groups of the user":    fill(`{"request":{"userInfo":{"groups":[`, `""`, `]}}}`),
		"options":               fill(`{"request":{"options":{"dryRun":[`, `""`, `]}}}`),
		"unknown fields":        fill(`{"x":[`, "0", `]}`),
		"an object that is not": fill(`{"request":{"\u006fbject":{"x":[`, "{}", `]}}}`),
		"a deep envelope":       `{"x":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + "}",
		"a deep object":         `{"request":{"object":` + strings.Repeat("[", maxStoredDepth) + strings.Repeat("]", maxStoredDepth) + "}}",
		"too long":              `{"x":"` + strings.Repeat("x", MaxReviewBytes) + `"}`,
		"cut off":               `{"request":{"object":{"a":`,
		"YAML":                  "a: &a [x]\nb: [*a, *a]\n",
		"Protocol Buffers":      "k8s\x00{}",
		"nothing":               "",
		"invalid UTF-8":         "{\"request\":{\"object\":\"\xff\"}}",
		"a list":                "[]",
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(body)
			boundstest.CheapRequest(t, func() {
				if _, err := ReadReview(text); err == nil {
					t.Error("it is read")
				}
			})
		})
	}
}

// FuzzReadReview verifies that the envelope and the objects of an accepted review are together what
// a decoder finds in the whole body, and that the envelope is a review. It skips keys that are
// there twice, in which decoders differ.
func FuzzReadReview(f *testing.F) {
	for _, seed := range []string{
		`{"request":{"uid":"1","object":{"a":"\"},{"},"oldObject":null}}`, `{"request":{"object":{}},"request":{"oldObject":{}}}`,
		`{"request":[{"object":1}]}`, `{"a":"request","request":{"a":"object"}}`, `{"request":{"object":"\\"}}`,
		` {"request" : { "oldObject" : [1, {"object":{}}] , "\u006fbject":2} , "object":{}}`, `{"request":{"object":1,"object":2}}`,
	} {
		f.Add([]byte(seed))
	}
	type review struct {
		Request map[string]json.RawMessage `json:"request"`
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		parts, err := ReadReview(body)
		if err != nil {
			return
		}
		var whole, envelope review
		twice, err := kjson.UnmarshalStrict(body, &whole, kjson.DisallowDuplicateFields)
		if err != nil || len(twice) > 0 || whole.Request == nil {
			return
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(parts.Envelope, &envelope); err != nil || envelope.Request == nil {
			t.Fatalf("the envelope %s is no review: %v", parts.Envelope, err)
		}
		for name, object := range map[string][]byte{"object": parts.Object, "oldObject": parts.OldObject} {
			if object != nil {
				envelope.Request[name] = object
			}
		}
		if diff := cmp.Diff(whole, envelope); diff != "" {
			t.Errorf("%s is split into %s, %s, and %s: %s", body, parts.Envelope, parts.Object, parts.OldObject, diff)
		}
	})
}
