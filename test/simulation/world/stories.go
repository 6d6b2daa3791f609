package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// stories returns actions with several parts at certain times, because single actions rarely occur
// in these combinations.
func stories() []Action {
	return []Action{
		{"release without nodes", func(w *World, r *rand.Rand) {
			w.setNodes(false)
			w.release(r)
			w.Run(4 * time.Minute)
			w.setNodes(true)
		}},
		{"delete an instance while a release lists", func(w *World, r *rand.Rand) {
			w.ListDelay = 10 * time.Second // the Pods of the instance end before that
			w.release(r)
			w.ListDelay = 0
			w.Run(time.Second)
			w.Remove(storage.NginxOperators, someName(r))
			w.Run(time.Minute)
		}},
		{"renew the certificate of a blocked instance", func(w *World, r *rand.Rand) {
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				s.Config = byConfigMap()
				UseCertificate(s)
			})
			w.Run(time.Minute)
			w.Remove(storage.ConfigMaps, "conf")
			w.Run(time.Minute)
			w.RenewCertificate()
			w.Run(time.Minute)
		}},
		{"take a node port for a moment", func(w *World, r *rand.Rand) {
			w.takeNodePort(someName(r), time.Duration(5+r.IntN(15))*time.Second)
			w.Run(4 * time.Minute)
		}},
		{"turn rollback on after a rollout has stalled", func(w *World, r *rand.Rand) {
			name, image := someName(r), ownImage(r)
			w.Kube.Faults.Unpullable = map[string]string{image: "i/o timeout"}
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) {
				s.Rollout, s.Image = rollout(false), image
			})
			w.Run(4 * time.Minute)
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) { s.Rollout = rollout(true) })
			w.Run(time.Minute)
		}},
		{"pause after a rollback", func(w *World, r *rand.Rand) {
			name, image := someName(r), ownImage(r)
			w.Kube.Faults.Unpullable = map[string]string{image: "not found"}
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) { s.Image = image })
			w.Run(time.Minute)
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) { s.Paused = true })
			w.Run(time.Minute)
		}},
		{"fail to sync Secrets for a moment", func(w *World, r *rand.Rand) {
			w.Heal()
			w.Run(10 * time.Second)
			w.Kube.Faults.StartError = corev1.ContainerStateWaiting{
				Reason: "CreateContainerConfigError", Message: "failed to sync secret cache: timed out waiting for the condition",
			}
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) { s.ForceRedeploy = fmt.Sprint(r.IntN(1000)) })
			w.Run(time.Duration(1+r.IntN(20)) * time.Second)
			w.Kube.Faults.StartError = corev1.ContainerStateWaiting{}
			w.Kube.Changed()
		}},
		{"create a missing token", func(w *World, r *rand.Rand) {
			w.Remove(storage.Secrets, tokenName)
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				useToken(s)
				s.ForceRedeploy = fmt.Sprint(r.IntN(1000))
			})
			w.Run(time.Minute)
			w.Must(w.Write(token()))
		}},
		{"change a port and restart on the view before", func(w *World, r *rand.Rand) {
			before := w.Store.Revision()
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				port(s).Port, port(s).TargetPort = 8080+r.Int32N(3), ptr.To[int32](8080)
			})
			w.Run(time.Minute)
			w.Restart(before)
			w.Run(20 * time.Second)
		}},
		{"change content under many volumes", func(w *World, r *rand.Rand) {
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				mountMany(s)
				s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
			})
			w.Run(time.Minute)
			w.writeContent(r)
		}},
		{"expose while Ingresses are refused, and lose the image", func(w *World, r *rand.Rand) {
			image := ownImage(r)
			w.refuse(storage.Ingresses, r.IntN(2) == 0)
			w.Kube.Faults.Unpullable = map[string]string{image: "not found"}
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				expose(s, r)
				s.Image = image
			})
			w.Run(4 * time.Minute)
		}},
		{"redeploy while a policy denies a kind", func(w *World, r *rand.Rand) {
			kinds := []*storage.Resource{storage.Deployments, storage.ControllerRevisions, storage.Services, storage.Ingresses}
			w.refuse(kinds[r.IntN(len(kinds))], true)
			w.Edit(someName(r), func(s *v1alpha2.NginxOperatorSpec) {
				s.ForceRedeploy = fmt.Sprint(r.IntN(1000))
				annotateService(s, r)
				expose(s, r)
			})
		}},
		{"change a Service while Pods crash", func(w *World, r *rand.Rand) {
			name := w.crashPods(r)
			if name == "" {
				return
			}
			w.Run(20 * time.Second)
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) { annotateService(s, r) })
		}},
		{"autoscale for a moment", func(w *World, r *rand.Rand) {
			name, most := someName(r), 1+r.Int32N(3)
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) {
				s.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To(most), MaxReplicas: most}
			})
			w.Run(time.Minute)
			w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) { s.Autoscaling = nil })
			w.Run(time.Minute)
		}},
		{"scale at v1alpha1", func(w *World, r *rand.Rand) {
			w.editOld(someName(r), func(s *v1alpha1.NginxOperatorSpec) { s.Replicas = ptr.To(r.Int32N(4)) })
		}},
	}
}

// takeNodePort sets a node port in the spec of an instance that a foreign Service has for a while.
func (w *World) takeNodePort(name string, while time.Duration) {
	number := int32(30100 + slices.Index(Names, name)) //nolint:gosec // it is small
	foreign := &corev1.Service{ObjectMeta: Meta("foreign-" + name)}
	foreign.Spec.Type = corev1.ServiceTypeNodePort
	foreign.Spec.Ports = []corev1.ServicePort{{Name: "x", Port: 80, NodePort: number}}
	if w.Write(foreign) != nil {
		return // the instance already has the port
	}
	w.NodePorts[number] = time.Time{}
	w.Edit(name, func(s *v1alpha2.NginxOperatorSpec) {
		s.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort}
		port(s).NodePort = &number
	})
	w.Run(while)
	w.Remove(storage.Services, foreign.Name)
	w.NodePorts[number] = time.Now()
}
