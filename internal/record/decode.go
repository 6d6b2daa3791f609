package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
)

// Decode parses the data of a ControllerRevision. Another client may have written it, so the data
// is bounded and the spec validated.
func Decode(raw []byte) (Data, error) {
	out, err := parseRevision(raw)
	if err != nil {
		return Data{}, err
	}
	return out, validation.Spec(&out.Spec, operand.SpecPath).ToAggregate()
}

// parseRevision is Decode without the validation of the spec.
func parseRevision(raw []byte) (Data, error) {
	object, err := bounds.Read(raw)
	if err != nil {
		return Data{}, err
	}
	declared, err := bounds.Decode(map[string]any{"spec": object["spec"]})
	if err != nil {
		return Data{}, err
	}
	delete(object, "spec")
	rest, err := json.Marshal(object)
	if err != nil {
		return Data{}, err
	}
	var out Data
	if err := json.Unmarshal(rest, &out); err != nil {
		return Data{}, err
	}
	out.Spec = declared.Spec
	return out, nil
}

// unpack returns the files of a record. It returns an error if they were too large to be recorded.
func (kept Data) unpack() (operand.Files, error) {
	if len(kept.Files) == 0 {
		return operand.Files{}, errors.New(
			"the files of the revision that runs were too large to keep a copy: resolve what status.blockedBy names")
	}
	reader, err := gzip.NewReader(bytes.NewReader(kept.Files))
	if err != nil {
		return operand.Files{}, fmt.Errorf("failed to unpack files: %w", err)
	}
	var out operand.Files
	if err := json.NewDecoder(io.LimitReader(reader, maxFileBytes)).Decode(&out); err != nil {
		return operand.Files{}, fmt.Errorf("failed to decode files: %w", err)
	}
	return out, nil
}

// has reports whether files have the hashes of a record.
func (kept Data) has(found operand.Files) bool {
	if kept.Config != "" && operand.NewConfiguration(found.Config).Hash != kept.Config {
		return false
	}
	if kept.Content != "" && operand.NewContent(&corev1.ConfigMap{Data: found.Text, BinaryData: found.Binary}).Hash != kept.Content {
		return false
	}
	if kept.FilesHash == "" {
		return true
	}
	byPath := map[string][]byte{}
	for _, file := range kept.Spec.Files {
		if file.ConfigMapRef == nil {
			continue
		}
		key := operand.CopiedKey(file.Path)
		if text, isText := found.FileText[key]; isText {
			byPath[file.Path] = []byte(text)
		} else {
			byPath[file.Path] = found.FileBinary[key]
		}
	}
	return len(byPath) == len(found.FileText)+len(found.FileBinary) && operand.NewDeclaredFiles(byPath).Hash == kept.FilesHash
}

// isRecord reports whether the name of a ControllerRevision has the hash of its data. It hashes the
// text as it was written, because another release may encode the same declaration in another way.
func isRecord(live *appsv1.ControllerRevision) bool {
	if len(live.Data.Raw) > maxRevisionBytes {
		return false
	}
	is := func(identity string, err error) bool { return err == nil && strings.HasSuffix(live.Name, "-"+identity) }
	for _, unnamed := range [][]string{{"replicas", "autoscaling", "paused", "rollout"}, {"replicas", "autoscaling"}} {
		text, err := without(live.Data.Raw, unnamed, "files")
		if is(operand.ShortHash(text), err) {
			return true
		}
	}
	kept, err := parseRevision(live.Data.Raw)
	return err == nil && (is(kept.identity()) || is(kept.identityOfOlderRelease()))
}

// without returns a JSON object without some of its fields, and without some fields of its spec.
func without(raw []byte, ofSpec []string, fields ...string) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return "", fmt.Errorf("no JSON object: %w", err)
	}
	var out []string
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return "", err
		}
		name := fmt.Sprint(key)
		if slices.Contains(fields, name) {
			continue
		}
		text := string(value)
		if name == "spec" && ofSpec != nil {
			if text, err = without(value, nil, ofSpec...); err != nil {
				return "", err
			}
		}
		out = append(out, fmt.Sprintf("%q:%s", name, text))
	}
	return "{" + strings.Join(out, ",") + "}", nil
}
