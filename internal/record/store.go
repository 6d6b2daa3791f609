package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// Store reads the records of an object.
type Store struct {
	// Live has the records without their data.
	Live live.State
	// API reads the data of a record from the API server.
	API client.Reader
	// Memory has the data of the records that were read before.
	Memory *Memory
}

// LastApplied returns the declaration that was applied last and has not failed. It is nil if
// nothing was applied yet. The error is an Unusable if the record cannot be used.
func (s Store) LastApplied(ctx context.Context, object *v1alpha2.NginxOperator) (*Declaration, error) {
	revisions, err := s.List(object)
	if err != nil {
		return nil, err
	}
	last := Applied(object, revisions, s.Live.Deployment())
	if last == nil {
		return nil, nil
	}
	return s.Restore(ctx, object, last)
}

// Applied returns the record that was applied last and has not failed, or nil. It is the record
// that the Deployment names. If that has failed or is gone, it is the last good record, or else the
// newest. A Deployment from an older release names no record. The records must be sorted, the
// newest first.
func Applied(
	object *v1alpha2.NginxOperator, records []appsv1.ControllerRevision, deployment *appsv1.Deployment,
) *appsv1.ControllerRevision {
	var names []string
	if deployment != nil && deployment.Labels[wellknown.LabelRecord] != "" {
		names = append(names, Name(object, deployment.Labels[wellknown.LabelRecord]))
		if good := object.Status.LastGoodRevision; good != nil {
			names = append(names, good.Revision)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(records), func(one appsv1.ControllerRevision) bool { return HasFailed(&object.Status, one.Name) })
	for _, name := range names {
		if at := slices.IndexFunc(usable, func(one appsv1.ControllerRevision) bool { return one.Name == name }); at >= 0 {
			return &usable[at]
		}
	}
	if len(usable) == 0 {
		return nil
	}
	return &usable[0]
}

// Restore returns the declaration of a record. The error is an Unusable if the record cannot be
// used, and a conflict if it no longer exists.
func (s Store) Restore(
	ctx context.Context, object *v1alpha2.NginxOperator, last *appsv1.ControllerRevision,
) (*Declaration, error) {
	kept, err := s.remember(ctx, object, last)
	if err != nil {
		return nil, err
	}
	applied, in := kept.Restore(object)
	applied.Generation = last.Revision
	out, err := NewDeclaration(applied, in, func(ctx context.Context) (operand.Files, error) {
		whole, err := s.readRevision(ctx, object, last)
		if err != nil {
			return operand.Files{}, err
		}
		out, err := whole.unpack()
		if err == nil && !whole.has(out) {
			err = &apply.Forged{Kind: "ControllerRevision", Child: last}
		}
		if err != nil {
			err = Unusable{err}
		}
		return out, err
	})
	if err == nil {
		out.Revision.Name = last.Name // the name by which the record exists, whichever release gave it
	}
	if err == nil && last.Kind == carrier {
		out.stored = func(ctx context.Context) ([]byte, error) {
			whole, err := s.readCarried(ctx, last, object.Name)
			if err != nil {
				return nil, err
			}
			return whole.Data.Raw, nil
		}
	}
	return out, err
}

// remember returns a record without its files. It reads the record only if it is not remembered.
// The reconciles of one object do not overlap.
func (s Store) remember(ctx context.Context, object *v1alpha2.NginxOperator, of *appsv1.ControllerRevision) (Data, error) {
	key := client.ObjectKeyFromObject(object)
	if known, found := s.Memory.find(key, of.UID); found {
		return known, nil
	}
	read, size, err := s.readSized(ctx, object, of)
	if err != nil {
		return Data{}, err
	}
	read.Files = nil
	s.Memory.add(key, remembered{of.UID, read, size})
	return read, nil
}

// List returns the records of an object without their data, the newest first.
func (s Store) List(object *v1alpha2.NginxOperator) ([]appsv1.ControllerRevision, error) {
	revisions, err := s.Live.Records()
	if err != nil {
		return nil, err
	}
	if object.Status.FirstDeclarationHash != "" {
		revisions = WithCarried(object, s.Live.Deployment(), revisions)
	}
	slices.SortFunc(revisions, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	return revisions, nil
}

// readRevision reads the data of a record from the API server.
func (s Store) readRevision(ctx context.Context, object *v1alpha2.NginxOperator, of *appsv1.ControllerRevision) (Data, error) {
	out, _, err := s.readSized(ctx, object, of)
	return out, err
}

// readSized is readRevision, and returns the size of the data in bytes.
func (s Store) readSized(ctx context.Context, object *v1alpha2.NginxOperator, of *appsv1.ControllerRevision) (Data, int, error) {
	live, err := &appsv1.ControllerRevision{}, error(nil)
	if of.Kind == carrier {
		live, err = s.readCarried(ctx, of, object.Name)
	} else {
		err = s.API.Get(ctx, client.ObjectKeyFromObject(of), live)
	}
	if apierrors.IsNotFound(err) || err == nil && live.UID != of.UID {
		return Data{}, 0, apierrors.NewConflict(appsv1.Resource("controllerrevisions"), of.Name, errors.New("it was replaced a moment ago"))
	}
	if err != nil {
		return Data{}, 0, fmt.Errorf("failed to read ControllerRevision %q: %w", of.Name, err)
	}
	if !isRecord(live) {
		return Data{}, 0, Unusable{&apply.Forged{Kind: "ControllerRevision", Child: live}}
	}
	out, err := Decode(live.Data.Raw)
	if err != nil {
		return Data{}, 0, Unusable{fmt.Errorf("failed to read ControllerRevision %q: %w", of.Name, err)}
	}
	return out, len(live.Data.Raw), nil
}
