package sidecar

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateContainer adds the container's name to those that are known.
func validateContainer(container *corev1.Container, known, volumes sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateName(container.Name, known, path.Child("name"))
	switch image := container.Image; {
	case image == "":
		errs = append(errs, field.Required(path.Child("image"), "a sidecar has no image of its own; write for example busybox:1.36"))
	case strings.ContainsFunc(image, unicode.IsSpace):
		errs = append(errs, field.Invalid(path.Child("image"), image, "must not contain white space"))
	}
	if container.RestartPolicy != nil || len(container.RestartPolicyRules) > 0 {
		errs = append(errs, field.Forbidden(path.Child("restartPolicy"), "only init containers have one, and sidecars are none; remove it"))
	}
	errs = append(errs, unsupported(container.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, unsupported(container.TerminationMessagePolicy, path.Child("terminationMessagePolicy"),
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(container.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(container.Env, path.Child("env"))...)
	errs = append(errs, validateResources(&container.Resources, path.Child("resources"))...)
	errs = append(errs, validateMounts(container.VolumeMounts, volumes, path.Child("volumeMounts"))...)
	for i := range container.VolumeDevices {
		errs = append(errs, field.Forbidden(path.Child("volumeDevices").Index(i), "a block device belongs to one Pod, and a SidecarSet is for many; remove it"))
	}
	errs = append(errs, validateProbe(container.LivenessProbe, true, path.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(container.StartupProbe, true, path.Child("startupProbe"))...)
	errs = append(errs, validateProbe(container.ReadinessProbe, false, path.Child("readinessProbe"))...)
	if container.Lifecycle != nil {
		errs = append(errs, validateHook(container.Lifecycle.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateHook(container.Lifecycle.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	return errs
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range ports {
		port, at := &ports[i], path.Index(i)
		if port.Name != "" {
			for _, message := range utilvalidation.IsValidPortName(port.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), port.Name, message))
			}
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, between(port.ContainerPort, 1, 65535, at.Child("containerPort"))...)
		errs = append(errs, between(port.HostPort, 0, 65535, at.Child("hostPort"))...)
		errs = append(errs, unsupported(port.Protocol, at.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
	}
	return errs
}

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		variable, at := &env[i], path.Index(i)
		if variable.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		for _, message := range utilvalidation.IsRelaxedEnvVarName(variable.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), variable.Name, message))
		}
		if variable.ValueFrom != nil && variable.Value != "" {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "cannot be set together with value"))
		}
	}
	return errs
}

func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("claims"), "a claim belongs to one Pod, and a SidecarSet is for many; remove it"))
	}
	for _, list := range []struct {
		name  string
		items corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range sortedNames(list.items) {
			at, quantity := path.Child(list.name).Key(string(name)), list.items[name]
			if quantity.Sign() < 0 {
				errs = append(errs, field.Invalid(at, quantity.String(), "must not be negative"))
			}
			for _, message := range utilvalidation.IsQualifiedName(string(name)) {
				errs = append(errs, field.Invalid(at, name, message))
			}
		}
	}
	for _, name := range sortedNames(resources.Requests) {
		request := resources.Requests[name]
		if limit, limited := resources.Limits[name]; limited && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must not be more than the limit of %s; raise the limit or lower the request", limit.String())))
		}
	}
	return errs
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// validateProbe is told whether one success has to be enough, as it has for probes that end a container.
func validateProbe(probe *corev1.Probe, once bool, path *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	var errs field.ErrorList
	if handlers(probe.Exec != nil, probe.HTTPGet != nil, probe.TCPSocket != nil, probe.GRPC != nil) != 1 {
		errs = append(errs, field.Invalid(path, "", "must have exactly one of exec, httpGet, tcpSocket and grpc"))
	}
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds}, {"timeoutSeconds", probe.TimeoutSeconds}, {"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold}, {"failureThreshold", probe.FailureThreshold},
	} {
		errs = append(errs, between(number.value, 0, math.MaxInt32, path.Child(number.name))...)
	}
	if once && probe.SuccessThreshold > 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1 here"))
	}
	if probe.HTTPGet != nil {
		errs = append(errs, validateHTTPGet(probe.HTTPGet, path.Child("httpGet"))...)
	}
	if probe.TCPSocket != nil {
		errs = append(errs, validatePort(probe.TCPSocket.Port, path.Child("tcpSocket", "port"))...)
	}
	if probe.GRPC != nil {
		errs = append(errs, between(probe.GRPC.Port, 1, 65535, path.Child("grpc", "port"))...)
	}
	return errs
}

func validateHook(hook *corev1.LifecycleHandler, path *field.Path) field.ErrorList {
	if hook == nil {
		return nil
	}
	var errs field.ErrorList
	if handlers(hook.Exec != nil, hook.HTTPGet != nil, hook.TCPSocket != nil, hook.Sleep != nil) != 1 {
		errs = append(errs, field.Invalid(path, "", "must have exactly one of exec, httpGet, tcpSocket and sleep"))
	}
	if hook.HTTPGet != nil {
		errs = append(errs, validateHTTPGet(hook.HTTPGet, path.Child("httpGet"))...)
	}
	return errs
}

func validateHTTPGet(action *corev1.HTTPGetAction, path *field.Path) field.ErrorList {
	errs := validatePort(action.Port, path.Child("port"))
	return append(errs, unsupported(action.Scheme, path.Child("scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
}

func validatePort(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		return between(port.IntVal, 1, 65535, path)
	}
	var errs field.ErrorList
	for _, message := range utilvalidation.IsValidPortName(port.StrVal) {
		errs = append(errs, field.Invalid(path, port.StrVal, message))
	}
	return errs
}

func handlers(set ...bool) int {
	count := 0
	for _, one := range set {
		if one {
			count++
		}
	}
	return count
}
