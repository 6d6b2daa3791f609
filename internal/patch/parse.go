// Package patch applies spec.patches to the children of an object, and rejects forbidden changes.
// Patches are untrusted: their size is checked before they are decoded, and the patched child is
// checked, not the way in which a patch changes it. For the reasons, see docs/adr/0031-patches.md.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// maxPatches and maxCharacters are the limits of the schema.
	maxPatches    = 8
	maxCharacters = 8192
	// maxBytes and maxValues limit all patches of an object together, and maxElements limits each
	// of their lists. The time to merge a list in kustomize grows with the square of its length,
	// and all patches can target the same child.
	maxBytes    = 32 << 10
	maxValues   = 256
	maxElements = 64
	maxDepth    = 32  // above the depth of any field of a child
	maxMessage  = 512 // bytes of a message, which quotes the patch
	maxFaults   = 8   // messages for one patch
)

type parsed struct {
	index      int // in spec.patches
	target     v1alpha2.PatchTarget
	raw        []byte
	operations bool // a list of operations (RFC 6902), not a strategic merge patch
}

// Check returns the errors in the text of patches, regardless of the children.
func Check(patches []v1alpha2.Patch, path *field.Path) field.ErrorList {
	_, errs := parse(patches, path)
	return errs
}

// parse decodes patches. It stops at the first error, because decoding can be expensive.
func parse(patches []v1alpha2.Patch, path *field.Path) ([]parsed, field.ErrorList) {
	if len(patches) > maxPatches {
		return nil, field.ErrorList{field.TooMany(path, len(patches), maxPatches)}
	}

	bytes := 0
	for i := range patches {
		bytes += len(patches[i].Patch)
	}
	if bytes > maxBytes {
		return nil, tooMuch(path, fmt.Sprintf("%d bytes", maxBytes))
	}

	var all []parsed
	values := 0
	for i, declared := range patches {
		if _, known := kinds[declared.Target.Kind]; !known {
			return nil, field.ErrorList{field.NotSupported(path.Index(i).Child("target", "kind"), declared.Target.Kind, Kinds())}
		}

		raw, count, err := parseOne(declared.Patch)
		if err != nil {
			return nil, field.ErrorList{invalid(path, i, err.Error())}
		}
		if values += count; values > maxValues {
			return nil, tooMuch(path, fmt.Sprintf("%d values", maxValues))
		}

		all = append(all, parsed{index: i, target: declared.Target, raw: raw, operations: raw[0] == '['})
	}

	return all, nil
}

func tooMuch(path *field.Path, most string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		fmt.Sprintf("all patches together have more than %s; remove some, or set other fields of the spec instead", most))}
}

func invalid(path *field.Path, index int, message string) *field.Error {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return field.Invalid(path.Index(index).Child("patch"), field.OmitValueType{}, message)
}

func parseOne(text string) (raw []byte, values int, err error) {
	defer func() {
		if cause := recover(); cause != nil { // the YAML parser panicked
			err = notYAML(fmt.Errorf("%v", cause))
		}
	}()

	if n := utf8.RuneCountInString(text); n > maxCharacters {
		return nil, 0, fmt.Errorf("has %d characters, the limit is %d; split it into several patches", n, maxCharacters)
	}
	if values, err = plain(text); err != nil {
		return nil, 0, err
	}
	if raw, err = yaml.YAMLToJSONStrict([]byte(text)); err != nil {
		return nil, 0, notYAML(err)
	}

	switch raw[0] {
	case '{':
		return raw, values, nil
	case '[':
		return raw, values, checkOperations(raw)
	}

	return nil, 0, errors.New("must be a mapping (strategic merge patch) or a list of operations (JSON patch)")
}

// notYAML returns the error of the YAML parser, which has up to three prefixes and several lines.
func notYAML(err error) error {
	reason := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n"} {
		reason = strings.TrimPrefix(reason, prefix)
	}

	reason = strings.ReplaceAll(strings.TrimSpace(reason), "\n  ", "; ")
	if strings.HasPrefix(reason, "line ") {
		return errors.New("not valid YAML, " + reason)
	}
	return errors.New("not valid YAML: " + reason)
}

// plain checks that a text is a single YAML document within the bounds, without anchors, aliases,
// and merge keys, which could expand to a large value. It expands nothing, and returns the number
// of values.
func plain(text string) (values int, err error) {
	decoder := kyaml.NewDecoder(strings.NewReader(text))
	var document, next kyaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return 0, errors.New("is empty; write a patch, or remove the entry")
	} else if err != nil {
		return 0, notYAML(err)
	}

	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return 0, errors.New("must be one YAML document; write an entry of spec.patches for each document")
	}

	root := document.Content[0]
	return values, plainNode(root, 0, root.Kind == kyaml.SequenceNode, &values)
}

// plainNode counts values without keys. A list of operations can be longer than others.
func plainNode(node *kyaml.Node, depth int, operations bool, values *int) error {
	*values++
	switch {
	case depth > maxDepth:
		return fmt.Errorf("must not be nested more than %d levels deep", maxDepth)
	case *values > maxValues+1:
		return fmt.Errorf("has more than %d values; remove some, or set other fields of the spec instead", maxValues)
	case node.Kind == kyaml.SequenceNode && len(node.Content) > maxElements && !operations:
		return fmt.Errorf("line %d: a list must have at most %d items", node.Line, maxElements)
	case node.Kind == kyaml.AliasNode || node.Anchor != "" || node.Tag == "!!merge":
		return fmt.Errorf("line %d: anchors, aliases, and merge keys are not supported; repeat the value", node.Line)
	}

	for i, inner := range node.Content {
		if err := plainNode(inner, depth+1, false, values); err != nil {
			return err
		}
		if node.Kind == kyaml.MappingNode && i%2 == 0 {
			*values--
		}
	}

	return nil
}

// supported are the operations of JSON patches. Each copy could double the size of a child.
var supported = []string{"add", "move", "remove", "replace", "test"}

// checkOperations rejects invalid operations. kustomize reports an invalid value of the others.
func checkOperations(raw []byte) error {
	var operations []map[string]any
	if err := json.Unmarshal(raw, &operations); err != nil {
		return errors.New("must be a list of operations with op and path (JSON patch, RFC 6902)")
	}

	for i, operation := range operations {
		op, _ := operation["op"].(string)
		switch at := field.NewPath("operation").Index(i); {
		case op == "copy":
			return fmt.Errorf("%s: copy is not supported; use add with the value", at)
		case !slices.Contains(supported, op):
			return field.NotSupported(at.Child("op"), op, supported)
		case !isPointer(operation["path"]):
			return fmt.Errorf("%s: %s", at.Child("path"), noPointer)
		case op == "move" && !isPointer(operation["from"]):
			return fmt.Errorf("%s: %s", at.Child("from"), noPointer)
		}
	}

	return nil
}

const noPointer = "must be a JSON pointer, for example /spec/template/spec/hostAliases"

func isPointer(value any) bool {
	path, _ := value.(string)
	return strings.HasPrefix(path, "/")
}
