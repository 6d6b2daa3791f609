package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/validation"
)

const (
	// maxRevisionBytes is the limit for the data of a ControllerRevision. etcd accepts requests of
	// up to 1.5 MiB.
	maxRevisionBytes = 1_500_000
	// maxFileBytes is the limit for the files of a record as JSON: three ConfigMaps of 1 MiB, with
	// up to six bytes for each byte.
	maxFileBytes = 19 << 20
)

// packers is a pool of gzip.Writers, because each has almost 1 MiB of tables.
var packers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Data is the data of a ControllerRevision: a spec that was applied, and everything else that its
// children depend on. While the current spec is blocked, the children are restored from it.
type Data struct {
	Spec         v1alpha2.NginxOperatorSpec `json:"spec"`
	Image        string                     `json:"image"`
	Exporter     string                     `json:"exporterImage,omitempty"`
	Config       string                     `json:"configHash"`
	Content      string                     `json:"contentHash,omitempty"`
	FilesHash    string                     `json:"filesHash,omitempty"`
	Secrets      string                     `json:"secretsHash,omitempty"`
	Certificates string                     `json:"certificatesHash,omitempty"`
	// Edition is the edition of the Pod template.
	Edition int `json:"edition,omitempty"`
	// Files is the gzipped JSON of operand.Files. It is not part of the name of the
	// ControllerRevision, which depends on the hashes.
	Files []byte `json:"files,omitempty"`
}

// DataOf returns the data of a record without its files.
func DataOf(object *v1alpha2.NginxOperator, in operand.Inputs) Data {
	out := Data{
		Spec: object.Spec, Image: in.Image, Exporter: in.Exporter, Config: in.Config.Hash,
		Secrets: in.SecretsHash, Certificates: in.CertificatesHash,
		Edition: in.Edition,
	}
	if in.Content != nil {
		out.Content = in.Content.Hash
	}
	if in.Files != nil {
		out.FilesHash = in.Files.Hash
	}
	return out
}

// encode returns the data of a record with its files, or without them if the result would be too
// large for etcd.
func (kept Data) encode(from operand.Files) ([]byte, error) {
	bare, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("failed to encode revision: %w", err)
	}
	var packed bytes.Buffer
	writer := packers.Get().(*gzip.Writer)
	defer packers.Put(writer)
	writer.Reset(&packed)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	if err := errors.Join(encoder.Encode(from), writer.Close()); err != nil {
		return nil, fmt.Errorf("failed to encode files: %w", err)
	}
	kept.Files = packed.Bytes()
	whole, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("failed to encode revision: %w", err)
	}
	if len(whole) > maxRevisionBytes {
		return bare, nil
	}
	return whole, nil
}

// Restore returns the object with the recorded spec, and the recorded inputs. The fields that are
// not part of a record are those of the given object.
func (kept Data) Restore(object *v1alpha2.NginxOperator) (*v1alpha2.NginxOperator, operand.Inputs) {
	out := object.DeepCopy()
	out.Spec = *kept.Spec.DeepCopy()
	withAutoscaling(&out.Spec, &object.Spec)
	out.Spec.Paused, out.Spec.Rollout = object.Spec.Paused, object.Spec.Rollout
	in := operand.Inputs{
		Image: kept.Image, Exporter: kept.Exporter, Config: operand.Configuration{Hash: kept.Config}, SecretsHash: kept.Secrets,
		CertificatesHash: kept.Certificates, Edition: operand.KnownEdition(kept.Edition),
	}
	if kept.Content != "" {
		in.Content = &operand.Content{Hash: kept.Content}
	}
	if kept.FilesHash != "" {
		in.Files = &operand.Content{Hash: kept.FilesHash}
	}
	return out, in
}

// withAutoscaling sets the current replicas and autoscaling in a recorded spec, as far as they are
// valid for the recorded Pods. A blocked spec does not block them.
func withAutoscaling(spec, now *v1alpha2.NginxOperatorSpec) {
	if replicas := defaults.Replicas(now); replicas >= 0 && replicas <= operand.MaxReplicas {
		spec.Replicas = ptr.To(replicas)
	}
	if now.Autoscaling == nil {
		spec.Autoscaling = nil
		return
	}
	declared := *spec
	declared.Autoscaling = now.Autoscaling.DeepCopy()
	if len(validation.Autoscaling(&declared, operand.SpecPath)) == 0 {
		*spec = declared
	}
}
