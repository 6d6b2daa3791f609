// Package sidecar is what SidecarSets mean, as pure functions that the webhooks and the controller share: the defaults and
// the rules of a SidecarSet, which Pods get its sidecars and how, and what running Pods get in place. Nothing here knows a
// client, a context or a clock.
package sidecar
