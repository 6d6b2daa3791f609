// Package v1 is the API group ego.example.com: the kind Activity.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:Optional
// +groupName=ego.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects in this package.
var GroupVersion = schema.GroupVersion{Group: "ego.example.com", Version: "v1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Activity{}, &ActivityList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// ActivitySpec declares what is run, once.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Activity runs once, so its spec cannot be changed; create another Activity"
type ActivitySpec struct {
	// command is what the shell of the container runs (/bin/sh -c), at most 32767 characters, as Linux passes to a program.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32767
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="command is empty; write for example echo hello"
	Command string `json:"command"`

	// host is the name of the node, at most 253 characters. Empty, the default, is any. One that does not exist fails the Activity.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$')",message="host must be the name of a node: lower-case letters, digits, hyphens and dots, beginning and ending with a letter or digit; or empty for any node"
	Host string `json:"host,omitempty"`

	// execuser is uid or uid:gid, each 0 to 2147483647. Empty, the default, is the user of the image, which may be root.
	// +kubebuilder:validation:MaxLength=21
	// +kubebuilder:validation:XValidation:rule="self.matches('^((0|[1-9][0-9]{0,9})(:(0|[1-9][0-9]{0,9}))?)?$') && self.split(':').all(id, size(id) == 0 || int(id) <= 2147483647)",message="execuser must be uid or uid:gid with numbers from 0 to 2147483647, for example 1000 or 1000:1000; names of users are not known"
	Execuser string `json:"execuser,omitempty"`

	// execcwd is the working directory, an absolute path of at most 4095 characters. Empty, the default, is that of the image.
	// +kubebuilder:validation:MaxLength=4095
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.startsWith('/')",message="execcwd must be an absolute path, for example /tmp"
	Execcwd string `json:"execcwd,omitempty"`

	// envs is the environment: at most 64 of KEY=VALUE, each of at most 4096 characters, no KEY twice. KEY is of letters, digits,
	// hyphens, dots and underscores and begins with no digit; VALUE is taken as it is, without expanding references.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*=')",message="each of envs must be KEY=VALUE, for example GREETING=hello; KEY is of letters, digits, hyphens, dots and underscores and begins with no digit"
	// +kubebuilder:validation:XValidation:rule="self.filter(e, e.contains('=')).map(e, e.split('=', 2)[0]).all(k, self.exists_one(e, e.startsWith(k + '=')))",message="envs has a KEY twice; remove one of them"
	Envs []string `json:"envs,omitempty"`
}

// Prosta is the state of the process. Succeeded and Failed are final.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type Prosta string

// States of the process: it has not started, it runs, it ended with exit code 0, it ended otherwise or could not run.
const (
	Pending   Prosta = "Pending"
	Running   Prosta = "Running"
	Succeeded Prosta = "Succeeded"
	Failed    Prosta = "Failed"
)

// ActivityStatus is what became of the process.
type ActivityStatus struct {
	// prosta is the state of the process: Pending, Running, Succeeded or Failed. The last two are final.
	Prosta Prosta `json:"prosta,omitempty"`
	// exitCode is that of the process, missing where it did not run or its end was not seen.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// startTime is when the process began.
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// finishTime is when the process ended.
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
	// pod is the name of the Pod. Once it is set, no other is created.
	Pod string `json:"pod,omitempty"`
	// message says in words why the process waits or failed.
	Message string `json:"message,omitempty"`
}

// Finished reports whether the state is final.
func (s *ActivityStatus) Finished() bool { return s.Prosta == Succeeded || s.Prosta == Failed }

// Activity runs a command once, in a Pod that is not restarted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=activities,singular=activity,scope=Namespaced
// +kubebuilder:printcolumn:name="Prosta",type=string,JSONPath=`.status.prosta`,description="State of the process"
// +kubebuilder:printcolumn:name="Exit",type=integer,JSONPath=`.status.exitCode`,description="Exit code of the process"
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`,description="Node that was asked for"
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.startTime`,priority=1
// +kubebuilder:printcolumn:name="Finished",type=date,JSONPath=`.status.finishTime`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1,description="Why the process waits or failed"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Activity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec declares what is run. It cannot be changed.
	// +required
	Spec ActivitySpec `json:"spec"`

	// status is what became of it; only the operator writes it.
	Status ActivityStatus `json:"status,omitzero"`
}

// ActivityList is a list of Activities.
//
// +kubebuilder:object:root=true
type ActivityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Activity `json:"items"`
}
