package v1alpha1

// Condition types of a SidecarSet. Each is there only while it has something to tell, so that the status of a SidecarSet
// whose Pods are all as it declares has the four numbers and nothing else.
const (
	// ConditionInvalid is True while the stored SidecarSet breaks a rule of its validation, which only happens where it was
	// written without the webhook. Nothing is injected and nothing is updated then.
	ConditionInvalid = "Invalid"
	// ConditionNotUpdatableInPlace is True while matched Pods run sidecars that differ from the declared ones in more than
	// the image. Each gets the declared ones when it is created anew.
	ConditionNotUpdatableInPlace = "NotUpdatableInPlace"
	// ConditionUpdating is there while matched Pods run another image than the declared one and could be updated in place:
	// True while that goes on, False while something holds it back.
	ConditionUpdating = "Updating"
)

// Reasons of the conditions.
const (
	// ReasonInvalidSpec (Invalid=True): the message names the fields.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonOtherFieldsChanged (NotUpdatableInPlace=True): containers or volumes changed beside the image.
	ReasonOtherFieldsChanged = "OtherFieldsChanged"
	// ReasonUpdateInProgress (Updating=True): Pods are updated, one at a time.
	ReasonUpdateInProgress = "UpdateInProgress"
	// ReasonWaitingForPod (Updating=True): a Pod is not ready, and as long as it is not, no other one is touched. The message
	// names it.
	ReasonWaitingForPod = "WaitingForPod"
	// ReasonPaused (Updating=False): spec.paused holds the update back.
	ReasonPaused = "Paused"
	// ReasonUpdateFailed (Updating=False): the API server refused the update of a Pod; it is tried again with back-off.
	ReasonUpdateFailed = "UpdateFailed"
)
