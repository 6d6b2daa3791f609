package nginxoperator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/bounds"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/validation"
)

const (
	// maxReplicas is what the schema allows.
	maxReplicas = 1000
	// maxRevisionBytes bounds a ControllerRevision. etcd takes no request of more than 1.5 MiB.
	maxRevisionBytes = 1_500_000
	// maxFileBytes bounds the files of a revision as JSON: those of three ConfigMaps of 1 MiB, in which a byte may take six.
	maxFileBytes = 19 << 20
)

// packers are gzip.Writers, each of which has most of a MiB of tables.
var packers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// revision is the data of a ControllerRevision: the declaration that was applied last, and all else that children are made of.
// While the declaration of the object is blocked, its children are restored from the revision.
type revision struct {
	Spec         v1alpha2.NginxOperatorSpec `json:"spec"`
	Image        string                     `json:"image"`
	Exporter     string                     `json:"exporterImage,omitempty"`
	Config       string                     `json:"configHash"`
	Content      string                     `json:"contentHash,omitempty"`
	FilesHash    string                     `json:"filesHash,omitempty"`
	Secrets      string                     `json:"secretsHash,omitempty"`
	Certificates string                     `json:"certificatesHash,omitempty"`
	// Edition is that of the Pod template.
	Edition int `json:"edition,omitempty"`
	// Files is the gzipped JSON of files. The name of the ControllerRevision does not depend on it: the hashes stand for it.
	Files []byte `json:"files,omitempty"`
}

// files are the data of the ConfigMaps that Pods mount.
type files struct {
	Config nginxconf.Files   `json:"config,omitempty"`
	Text   map[string]string `json:"text,omitempty"`
	Binary map[string][]byte `json:"binary,omitempty"`
	// FileText and FileBinary are those of spec.files.
	FileText   map[string]string `json:"fileText,omitempty"`
	FileBinary map[string][]byte `json:"fileBinary,omitempty"`
}

// revisionOf returns what is kept of a declaration, without its files.
func revisionOf(object *v1alpha2.NginxOperator, in inputs) revision {
	out := revision{
		Spec: object.Spec, Image: in.image, Exporter: in.exporter, Config: in.config.hash, Secrets: in.secrets, Certificates: in.certificates,
		Edition: in.edition,
	}
	if in.content != nil {
		out.Content = in.content.hash
	}
	if in.files != nil {
		out.FilesHash = in.files.hash
	}
	return out
}

// desiredRevision returns the record of a declaration, without its data, which is added when it is created. A change that no blocker
// blocks, of replicas and autoscaling, makes no other record.
func desiredRevision(object *v1alpha2.NginxOperator, in inputs) (*appsv1.ControllerRevision, error) {
	kept := revisionOf(object, in)
	kept.Spec.Replicas, kept.Spec.Autoscaling = nil, nil
	identity, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("failed to encode revision: %w", err)
	}
	out := &appsv1.ControllerRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: childMeta(object, in),
		Revision:   object.Generation,
	}
	out.Name = object.Name + "-" + shortHash(string(identity))
	return out, nil
}

// encode returns the data of a record with its files, and without them where etcd would not take both.
func (kept revision) encode(from files) ([]byte, error) {
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

// decodeRevision returns what a ControllerRevision says. Others than the operator may have written it, so it is bounded and
// validated as a declaration is.
func decodeRevision(raw []byte) (revision, error) {
	object, err := bounds.Read(raw)
	if err != nil {
		return revision{}, err
	}
	declared, err := bounds.Decode(map[string]any{"spec": object["spec"]})
	if err != nil {
		return revision{}, err
	}
	delete(object, "spec")
	rest, err := json.Marshal(object)
	if err != nil {
		return revision{}, err
	}
	var out revision
	if err := json.Unmarshal(rest, &out); err != nil {
		return revision{}, err
	}
	out.Spec = declared.Spec
	return out, validation.Spec(&out.Spec, specPath).ToAggregate()
}

// unpack returns the files of a revision.
func (kept revision) unpack() (files, error) {
	if len(kept.Files) == 0 {
		return files{}, errors.New("the files of the revision that runs were too large to keep a copy: resolve what status.blockedBy names")
	}
	reader, err := gzip.NewReader(bytes.NewReader(kept.Files))
	if err != nil {
		return files{}, fmt.Errorf("failed to unpack files: %w", err)
	}
	var out files
	if err := json.NewDecoder(io.LimitReader(reader, maxFileBytes)).Decode(&out); err != nil {
		return files{}, fmt.Errorf("failed to decode files: %w", err)
	}
	return out, nil
}

// badRevision is the error for a ControllerRevision whose data cannot be used, and no other try will change that.
type badRevision struct{ error }

func isBadRevision(err error) bool { return errors.As(err, &badRevision{}) }

// remembered is the revision of a blocked object, without its files.
type remembered struct {
	uid      types.UID
	revision revision
}

// declaration is what the children of an object are made of, and the record of it.
type declaration struct {
	object *v1alpha2.NginxOperator
	in     inputs
	// revision has no data: they are added when it is created.
	revision *appsv1.ControllerRevision
	// files reads the data of ConfigMaps.
	files func(context.Context) (files, error)
}

func newDeclaration(object *v1alpha2.NginxOperator, in inputs, read func(context.Context) (files, error)) (*declaration, error) {
	revision, err := desiredRevision(object, in)
	return &declaration{object, in, revision, read}, err
}

func (d *declaration) fill() apply.Fill { return fill(d.object, d.in, d.files) }

// lastApplied returns the declaration that was applied last and has not failed, with the replicas that the object has now. It is nil
// where nothing was applied yet.
func (r *Reconciler) lastApplied(ctx context.Context, object *v1alpha2.NginxOperator) (*declaration, error) {
	revisions, err := r.keptRevisions(ctx, object)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(revisions, func(one appsv1.ControllerRevision) bool { return !hasFailed(&object.Status, one.Name) })
	if at < 0 {
		return nil, nil
	}
	return r.restored(ctx, object, &revisions[at])
}

// restored returns the declaration that a ControllerRevision keeps, with the replicas that the object has now.
func (r *Reconciler) restored(
	ctx context.Context, object *v1alpha2.NginxOperator, last *appsv1.ControllerRevision,
) (*declaration, error) {
	key := client.ObjectKeyFromObject(object)
	kept, found := r.revisions.Load(key)
	if !found || kept.(remembered).uid != last.UID {
		read, err := r.readRevision(ctx, last)
		if err != nil {
			return nil, err
		}
		read.Files = nil
		kept = remembered{last.UID, read}
		r.revisions.Store(key, kept)
	}
	applied, in := kept.(remembered).revision.restore(object)
	applied.Generation = last.Revision
	return newDeclaration(applied, in, func(ctx context.Context) (files, error) {
		whole, err := r.readRevision(ctx, last)
		if err != nil {
			return files{}, err
		}
		out, err := whole.unpack()
		if err != nil {
			err = badRevision{err}
		}
		return out, err
	})
}

// restore returns the object as the revision declares it, and the rest of what its children are made of.
func (kept revision) restore(object *v1alpha2.NginxOperator) (*v1alpha2.NginxOperator, inputs) {
	out := object.DeepCopy()
	out.Spec = *kept.Spec.DeepCopy()
	withAutoscaling(&out.Spec, &object.Spec)
	in := inputs{
		image: kept.Image, exporter: kept.Exporter, config: configuration{hash: kept.Config}, secrets: kept.Secrets,
		certificates: kept.Certificates, edition: knownEdition(kept.Edition),
	}
	if kept.Content != "" {
		in.content = &content{hash: kept.Content}
	}
	if kept.FilesHash != "" {
		in.files = &content{hash: kept.FilesHash}
	}
	return out, in
}

// keptRevisions returns the revisions of an object, the one that was applied last first, without their data.
func (r *Reconciler) keptRevisions(ctx context.Context, object *v1alpha2.NginxOperator) ([]appsv1.ControllerRevision, error) {
	return r.listRevisions(ctx, object, writtenOf(object)...)
}

func (r *Reconciler) listRevisions(
	ctx context.Context, object *v1alpha2.NginxOperator, options ...client.ListOption,
) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("failed to list ControllerRevisions: %w", err)
	}
	revisions := slices.DeleteFunc(list.Items, func(item appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(&item, object) || item.DeletionTimestamp != nil
	})
	slices.SortFunc(revisions, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	return revisions, nil
}

// readRevision reads the data of a ControllerRevision from the API server.
func (r *Reconciler) readRevision(ctx context.Context, of *appsv1.ControllerRevision) (revision, error) {
	live := &appsv1.ControllerRevision{}
	err := r.Applier.Reader.Get(ctx, client.ObjectKeyFromObject(of), live)
	if apierrors.IsNotFound(err) || err == nil && live.UID != of.UID {
		return revision{}, apierrors.NewConflict(appsv1.Resource("controllerrevisions"), of.Name, errors.New("it was replaced a moment ago"))
	}
	if err != nil {
		return revision{}, fmt.Errorf("failed to read ControllerRevision %q: %w", of.Name, err)
	}
	out, err := decodeRevision(live.Data.Raw)
	if err != nil {
		return revision{}, badRevision{fmt.Errorf("failed to read ControllerRevision %q: %w", of.Name, err)}
	}
	return out, nil
}
