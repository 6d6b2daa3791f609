package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/change"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
)

// Resolution is the result of resolving a spec and its references.
type Resolution struct {
	// Invalid are the reasons why the spec cannot be applied.
	Invalid []failure.Failure
	// Outdated are stored values of the spec that this release refuses in a new write, and Accepted
	// has the hashes of these values.
	Outdated field.ErrorList
	Accepted []string
	// Certificates are the referenced certificates that nginx can use.
	Certificates []operand.Certificate
	// CertificatesHash is the hash of these certificates, with which Pods mount them, or "".
	CertificatesHash string
	// Resolved reports whether all references could be read.
	Resolved bool
}

// Declare returns the declaration of the object, or nil if its spec cannot be used, and the
// resolution of its spec. It returns an error if an object cannot be read.
func (r Decider) Declare(ctx context.Context, object *v1alpha2.NginxOperator) (*revision.Declaration, Resolution, error) {
	found := r.ratchet(object)
	in, invalid, err := r.Resolver.Resolve(ctx, object, found.Invalid)
	found.Invalid, found.Resolved = invalid, err == nil
	found.Certificates, found.CertificatesHash = in.Certificates, in.CertificatesHash
	if err != nil || len(invalid) > 0 {
		found.Accepted = object.Status.AcceptedValues // the values are in effect still
		return nil, found, err
	}

	out, err := r.render(object, in, "")
	if refused := (operand.NotPatched{}); errors.As(err, &refused) {
		found.Invalid = []failure.Failure{{Reason: v1alpha2.ReasonInvalidConfiguration, Message: refused.Error()}}
		return nil, found, nil
	}

	return out, found, err
}

// RenderAgain returns a marked declaration of a spec for another live state, or with another suffix
// in the names of its ConfigMaps. For "", they end with the suffix of the live Deployment.
func (r Decider) RenderAgain(object *v1alpha2.NginxOperator, before *revision.Declaration, suffix string) (*revision.Declaration, error) {
	out, err := r.render(object, before.Inputs, suffix)
	if err != nil {
		return nil, err
	}
	return out, r.Mark(object, out)
}

// render returns the declaration of a spec with these inputs. The suffix is that of RenderAgain.
func (r Decider) render(object *v1alpha2.NginxOperator, in operand.Inputs, suffix string) (*revision.Declaration, error) {
	running, err := r.Live.Running()
	if err != nil {
		return nil, err
	}

	in.Missing, in.Running, in.Deployment = r.Missing, running, r.Live.Deployment()
	in.Suffix = cmp.Or(suffix, operand.SuffixOf(in.Deployment))
	out := &revision.Declaration{
		Generation: object.Generation, Object: object, Inputs: in,
		Content: revision.NewContent(object, in, r.Resolver.ReadFiles(object, in)),
	}

	if out.Children, err = operand.Children(object, in); err != nil {
		return nil, err
	}

	out.Change, err = change.Of(object, in, &out.Deployment().Spec.Template)
	return out, err
}

// Mark writes the ID of its Pods to a rendered declaration. An upgrade alone changes no child, so
// the Deployment of a release before 0.8.0 keeps its names until its Pods change.
func (r Decider) Mark(object *v1alpha2.NginxOperator, declared *revision.Declaration) error {
	deployment, live := declared.Deployment(), r.Live.Deployment()
	if operand.IsMarkedAsBefore(live) && revision.ChangeOf(object, live).SamePods(declared.Change) {
		operand.MarkAsBefore(deployment, live)
		return nil
	}

	spec, err := json.Marshal(change.UserPart(&object.Spec))
	if err != nil {
		return fmt.Errorf("failed to encode spec: %w", err)
	}

	operand.Mark(deployment, string(declared.Change), string(spec), live)
	return nil
}

// ratchet finds the refused values of a spec. Values that were in effect before this release
// refused them stay in effect, and the status reports them. The others are blockers: they were
// written while admission was unavailable.
func (r Decider) ratchet(object *v1alpha2.NginxOperator) Resolution {
	var out Resolution
	before := object.Status.AcceptedValues
	isFirst := len(before) == 0 && r.Live.Deployment() != nil && object.Status.ObservedGeneration == object.Generation &&
		wasApplied(&object.Status)
	for _, refusal := range r.Resolver.Refusals(object) {
		switch hash := operand.ShortHash(refusal.Key()); {
		case isFirst || slices.Contains(before, hash):
			out.Outdated = append(out.Outdated, refusal.Err)
			out.Accepted = append(out.Accepted, hash)
		default:
			out.Invalid = append(out.Invalid, failure.Failure{
				Reason: v1alpha2.ReasonInvalidConfiguration, Message: refusal.Err.Error(),
			})
		}
	}

	slices.Sort(out.Accepted)
	out.Accepted = slices.Compact(out.Accepted)
	return out
}
