// Package crd embeds the CustomResourceDefinition, as controller-gen writes it.
package crd

import _ "embed"

// NginxOperators is the manifest of the CRD, without what kustomize adds: the conversion, and the
// bounds of quantities and integers in types of Kubernetes.
//
//go:embed bases/operator.example.com_nginxoperators.yaml
var NginxOperators []byte
