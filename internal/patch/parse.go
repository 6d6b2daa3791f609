// Package patch applies spec.patches to the children of an object, and says what a patch may not do. Patches are anybody's text: they
// are bounded before they are decoded, and what they make of a child is judged by what it is then, not by how they made it.
// docs/adr/0031-patches.md has the reasons.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// maxPatches and maxCharacters are what the schema allows.
	maxPatches    = 8
	maxCharacters = 8192
	// maxBytes and maxValues bound all patches of an object together, and maxElements each of their lists: kustomize merges a list in a
	// time in proportion to the square of its length, and they can all be of one child.
	maxBytes    = 32 << 10
	maxValues   = 256
	maxElements = 64
	// maxDepth is above that of any field of a child.
	maxDepth = 32
	// maxMessage bounds what is told of a fault; it quotes the patch.
	maxMessage = 512
	// maxFaults is how many faults of one patch are told.
	maxFaults = 8
)

// parsed is a patch as JSON.
type parsed struct {
	raw []byte
	// operations: it is a list of operations (RFC 6902) and not a strategic merge patch.
	operations bool
	// values is how many it has.
	values int
}

// Check returns what is wrong with the text of patches, whatever they are applied to.
func Check(patches []v1alpha2.Patch, path *field.Path) field.ErrorList {
	_, errs := parse(patches, path)
	return errs
}

// parse decodes patches. It ends at the first fault: the text of each may be dear.
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
	out, values := make([]parsed, len(patches)), 0
	for i, declared := range patches {
		if _, known := kinds[declared.Target.Kind]; !known {
			return nil, field.ErrorList{field.NotSupported(path.Index(i).Child("target", "kind"), declared.Target.Kind, Kinds())}
		}
		var err error
		if out[i], err = parseOne(declared.Patch); err != nil {
			return nil, field.ErrorList{invalid(path, i, err.Error())}
		}
		if values += out[i].values; values > maxValues {
			return nil, tooMuch(path, fmt.Sprintf("%d values", maxValues))
		}
	}
	return out, nil
}

func tooMuch(path *field.Path, most string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		fmt.Sprintf("all patches together have more than %s: remove some, or use the fields of the spec", most))}
}

func invalid(path *field.Path, index int, message string) *field.Error {
	return field.Invalid(path.Index(index).Child("patch"), field.OmitValueType{}, cut(message))
}

func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

func parseOne(text string) (out parsed, err error) {
	defer func() {
		if recover() != nil { // a parser's
			out, err = parsed{}, errors.New("is no YAML: correct it")
		}
	}()
	if n := utf8.RuneCountInString(text); n > maxCharacters {
		return out, fmt.Errorf("has %d characters, and at most %d are allowed: make several patches of it", n, maxCharacters)
	}
	if out.values, err = plain(text); err != nil {
		return out, err
	}
	if out.raw, err = yaml.YAMLToJSONStrict([]byte(text)); err != nil {
		return out, fmt.Errorf("is no YAML: %w", err)
	}
	switch {
	case len(out.raw) > 0 && out.raw[0] == '{':
		return out, nil
	case len(out.raw) > 0 && out.raw[0] == '[':
		out.operations = true
		return out, checkOperations(out.raw)
	}
	return out, errors.New("has to be a mapping (a strategic merge patch) or a list of operations (a JSON patch)")
}

// plain holds that a text is one document of YAML that is no larger than it looks, and returns how many values it has. It expands
// nothing.
func plain(text string) (values int, err error) {
	decoder := kyaml.NewDecoder(strings.NewReader(text))
	var document, next kyaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return 0, errors.New("is empty: write a patch, or remove the entry")
	} else if err != nil {
		return 0, fmt.Errorf("is no YAML: %w", err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return 0, errors.New("has more than one document: make a patch of each")
	}
	root := document.Content[0]
	return values, plainNode(root, 0, root.Kind == kyaml.SequenceNode, &values)
}

// plainNode counts the values, those of maps without their keys. A list of operations may be longer than others.
func plainNode(node *kyaml.Node, depth int, operations bool, values *int) error {
	*values++
	switch {
	case depth > maxDepth:
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	case *values > maxValues+1:
		return fmt.Errorf("has more than %d values", maxValues)
	case node.Kind == kyaml.SequenceNode && len(node.Content) > maxElements && !operations:
		return fmt.Errorf("line %d: a list has more than %d elements", node.Line, maxElements)
	case node.Kind == kyaml.AliasNode || node.Anchor != "" || node.Tag == "!!merge":
		return fmt.Errorf("line %d: anchors, aliases and merge keys are not allowed: write the value where it belongs", node.Line)
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

// checkOperations refuses what is no operation, and copies: with each of them a child could double.
func checkOperations(raw []byte) error {
	var operations []struct {
		Op   string  `json:"op"`
		Path *string `json:"path"`
	}
	if err := json.Unmarshal(raw, &operations); err != nil {
		return fmt.Errorf("is a list, but not of operations with op and path (RFC 6902): %w", err)
	}
	for i, operation := range operations {
		switch operation.Op {
		case "add", "remove", "replace", "move", "test":
		case "copy":
			return fmt.Errorf("operation %d: copy is not allowed: use add with the value", i)
		default:
			return fmt.Errorf("operation %d: op is %q, and has to be add, remove, replace, move or test", i, operation.Op)
		}
		if operation.Path == nil || !strings.HasPrefix(*operation.Path, "/") {
			return fmt.Errorf("operation %d: path has to be a JSON pointer such as /spec/template/spec/hostAliases", i)
		}
	}
	return nil
}
