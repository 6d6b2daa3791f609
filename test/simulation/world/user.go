package world

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
)

// tokenName is the name of a Secret that an environment variable references.
const tokenName = "token"

func token() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: Meta(tokenName), Data: map[string][]byte{"token": []byte("x")}}
}

// specActions returns the actions that change the spec of one instance.
func specActions() []Action {
	type spec = v1alpha2.NginxOperatorSpec
	return []Action{
		change("scale", func(s *spec, r *rand.Rand) { s.Replicas = ptr.To(r.Int32N(4)) }),
		change("redeploy", func(s *spec, r *rand.Rand) { s.ForceRedeploy = fmt.Sprint(r.IntN(1000)) }),
		change("annotate the Service", annotateService),
		change("annotate Pods", func(s *spec, r *rand.Rand) {
			s.PodTemplate = &v1alpha2.PodTemplate{Annotations: map[string]string{noteKey: fmt.Sprint(r.IntN(100))}}
		}),
		change("configure inline", func(s *spec, r *rand.Rand) {
			s.Config = &v1alpha2.Config{Inline: server(fmt.Sprintf("location /%d { return 204; }", r.IntN(9)))}
			s.Nginx, s.Monitoring = outside(r)
		}),
		change("configure by ConfigMap", func(s *spec, r *rand.Rand) {
			switch s.Config = byConfigMap(); r.IntN(3) {
			case 0:
				s.Config.ConfigMapRef.Key = "*.conf"
			case 1:
				s.Config = withValue()
			}
		}),
		change("serve content", func(s *spec, r *rand.Rand) {
			s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
			if r.IntN(2) == 0 {
				s.Content.ConfigMapRef.Items = []v1alpha2.ContentItem{{Key: "index.html", Path: "a/index.html"}}
			}
		}),
		change("drain", func(s *spec, r *rand.Rand) { s.DrainSeconds = ptr.To(1 + r.Int32N(20)) }),
		change("expose", expose),
		change("narrow", narrow),
		change("open", func(s *spec, _ *rand.Rand) { s.NetworkPolicy = nil }),
		change("do not expose", func(s *spec, _ *rand.Rand) { s.Expose = nil }),
		change("autoscale", func(s *spec, r *rand.Rand) {
			s.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](1), MaxReplicas: 1 + r.Int32N(3)}
		}),
		change("do not autoscale", func(s *spec, _ *rand.Rand) { s.Autoscaling = nil }),
		change("pause", func(s *spec, _ *rand.Rand) { s.Paused = true }),
		change("unpause", func(s *spec, _ *rand.Rand) { s.Paused = false }),
		change("use an image", func(s *spec, r *rand.Rand) { s.Image = ownImage(r) }),
		change("use the default image", func(s *spec, _ *rand.Rand) { s.Image = "" }),
		change("do not roll back", func(s *spec, _ *rand.Rand) { s.Rollout = rollout(false) }),
		change("roll back", func(s *spec, _ *rand.Rand) { s.Rollout = rollout(true) }),
		change("name the port", func(s *spec, r *rand.Rand) { port(s).Name = []string{"http", "web", "main"}[r.IntN(3)] }),
		change("number the port", func(s *spec, r *rand.Rand) {
			port(s).Port, port(s).TargetPort = 8080+r.Int32N(3), ptr.To(8080+r.Int32N(3))
		}),
		change("use a token", func(s *spec, _ *rand.Rand) { useToken(s) }),
		change("use no token", func(s *spec, _ *rand.Rand) { s.Env = nil }),
		change("use a certificate", func(s *spec, _ *rand.Rand) { UseCertificate(s) }),
		change("mount many ConfigMaps", func(s *spec, r *rand.Rand) {
			if mountMany(s); r.IntN(2) == 0 {
				s.Files = []v1alpha2.File{{Path: "pages", ConfigMapRef: &v1alpha2.FileReference{Name: "pages", Key: "*.html"}}}
			}
		}),
		change("mount no ConfigMaps", func(s *spec, _ *rand.Rand) { s.Volumes, s.Files = nil, nil }),
	}
}

// rollout returns the settings of rollouts. Their deadline is shorter than the default, so that
// runs of a few minutes reach it.
func rollout(automaticRollback bool) *v1alpha2.Rollout {
	return &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](120), AutomaticRollback: &automaticRollback}
}

func ownImage(r *rand.Rand) string { return fmt.Sprintf("registry.example/own:%d", r.IntN(3)) }

// server returns a configuration that listens on every number that "number the port" can choose.
func server(text string) string {
	return "server { listen 8080; listen 8081; listen 8082; " + text + " }"
}

// outside returns directives outside of the http context, and a module, or nil, and the monitoring
// of the same instance.
func outside(r *rand.Rand) (*v1alpha2.Nginx, *v1alpha2.Monitoring) {
	switch r.IntN(3) {
	case 0:
		return &v1alpha2.Nginx{Main: fmt.Sprintf("worker_rlimit_nofile %d;", 2048+r.IntN(3)), Events: "multi_accept on;"},
			&v1alpha2.Monitoring{RequestMetrics: &v1alpha2.RequestMetrics{}}
	case 1:
		return &v1alpha2.Nginx{Modules: []string{"ngx_http_js_module"}, Resolver: &v1alpha2.Resolver{Valid: "5s"}}, &v1alpha2.Monitoring{}
	}
	return nil, nil
}

// withValue returns a configuration with a value from the ConfigMap of the content, and with the
// namespace.
func withValue() *v1alpha2.Config {
	return &v1alpha2.Config{Inline: server(`return 200 "${PAGE} ${NAMESPACE}";`), Values: []v1alpha2.ConfigValue{
		{Name: "PAGE", ValueFrom: &v1alpha2.ConfigValueSource{ConfigMapKeyRef: &v1alpha2.SecretFileReference{Name: "pages", Key: "index.html"}}},
		{Name: "NAMESPACE", ValueFrom: &v1alpha2.ConfigValueSource{FieldRef: &v1alpha2.ConfigValueField{FieldPath: "metadata.namespace"}}},
	}}
}

func byConfigMap() *v1alpha2.Config {
	return &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "conf", Key: "nginx.conf"}}
}

func annotateService(s *v1alpha2.NginxOperatorSpec, r *rand.Rand) {
	service := ptr.Deref(s.Service, v1alpha2.Service{})
	service.Annotations = map[string]string{noteKey: fmt.Sprint(r.IntN(100))}
	s.Service = &service
}

// noteKey is an annotation of Pods and of the Service.
const noteKey = "example.com/note"

func narrow(s *v1alpha2.NginxOperatorSpec, r *rand.Rand) {
	peer := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: fmt.Sprintf("192.0.2.%d/32", r.IntN(9))}}
	s.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{peer}}
}

func expose(s *v1alpha2.NginxOperatorSpec, r *rand.Rand) {
	host := fmt.Sprintf("h%d.example.com", r.IntN(9))
	s.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: host}}}}
}

// port returns the first port of a spec. It adds a port if the spec has none.
func port(s *v1alpha2.NginxOperatorSpec) *v1alpha2.Port {
	if len(s.Ports) == 0 {
		s.Ports = []v1alpha2.Port{{Name: "http", Port: 8080}}
	}
	return &s.Ports[0]
}

func useToken(s *v1alpha2.NginxOperatorSpec) {
	s.Env = []v1alpha2.EnvVar{{Name: "TOKEN", ValueFrom: &v1alpha2.EnvVarSource{
		SecretKeyRef: &v1alpha2.KeyReference{Name: tokenName, Key: "token"},
	}}}
}

// UseCertificate references the certificate that RenewCertificate writes.
func UseCertificate(s *v1alpha2.NginxOperatorSpec) {
	s.TLS = []v1alpha2.TLS{{SecretName: certificateName}}
}

// mountMany adds as many optional ConfigMaps as three projected volumes can have.
func mountMany(s *v1alpha2.NginxOperatorSpec) {
	const volumes, sources = 3, 16
	s.Volumes = nil
	for v := range volumes {
		volume := v1alpha2.Volume{Name: fmt.Sprintf("many-%d", v), MountPath: fmt.Sprintf("/many/%d", v), Projected: &v1alpha2.ProjectedVolume{}}
		for i := range sources {
			volume.Projected.Sources = append(volume.Projected.Sources, v1alpha2.ProjectedSource{
				ConfigMap: &v1alpha2.ProjectedObject{Name: fmt.Sprintf("many-%d-%d", v, i), Optional: true},
			})
		}
		s.Volumes = append(s.Volumes, volume)
	}
}

// objectActions returns the actions that write referenced objects, and that change or delete
// children.
func objectActions() []Action {
	return []Action{
		{"delete an instance", func(w *World, r *rand.Rand) { w.Remove(storage.NginxOperators, someName(r)) }},
		{"write the configuration", func(w *World, r *rand.Rand) {
			written := ConfigMap("conf", "nginx.conf", server(fmt.Sprintf("return 20%d;", r.IntN(5))))
			if r.IntN(2) == 0 {
				written.Data["more.conf"] = "upstream more { server 192.0.2.1; }"
			}
			w.Must(w.Write(written))
		}},
		{"write the content", func(w *World, r *rand.Rand) { w.writeContent(r) }},
		{"delete the configuration", func(w *World, _ *rand.Rand) { w.Remove(storage.ConfigMaps, "conf") }},
		{"delete the token", func(w *World, _ *rand.Rand) { w.Remove(storage.Secrets, tokenName) }},
		{"write the token", func(w *World, _ *rand.Rand) { w.Must(w.Write(token())) }},
		{"renew the certificate", func(w *World, _ *rand.Rand) { w.RenewCertificate() }},
		{"delete a Deployment", func(w *World, r *rand.Rand) { w.Remove(storage.Deployments, someName(r)) }},
		{"delete a Service", func(w *World, r *rand.Rand) { w.Remove(storage.Services, someName(r)) }},
		{"delete what is stored", func(w *World, _ *rand.Rand) {
			for _, found := range w.Store.List(storage.ControllerRevisions, Namespace) {
				w.Remove(storage.ControllerRevisions, found.Name)
			}
		}},
		{"pause a Deployment", func(w *World, r *rand.Rand) { w.pauseDeployment(someName(r), true) }},
		{"resume Deployments", func(w *World, _ *rand.Rand) { w.resume() }},
		{"wipe a status", func(w *World, r *rand.Rand) { w.WipeStatus(someName(r)) }},
	}
}

func (w *World) writeContent(r *rand.Rand) {
	w.Must(w.Write(ConfigMap("pages", "index.html", fmt.Sprint(r.IntN(100)))))
}

// pauseDeployment pauses or resumes a Deployment, like kubectl rollout.
func (w *World) pauseDeployment(name string, paused bool) {
	d := w.Deployment(name)
	if d.Name != "" && d.Spec.Paused != paused {
		d.Spec.Paused = paused
		w.Must(w.Write(d))
	}
}

func (w *World) resume() {
	for _, name := range Names {
		w.pauseDeployment(name, false)
	}
}

// WipeStatus removes the status of an instance, like a client that restores objects from a backup.
func (w *World) WipeStatus(name string) {
	found := w.Store.Get(storage.Key{Resource: storage.NginxOperators, Namespace: Namespace, Name: name})
	if found == nil {
		return
	}
	instance := w.Instance(name)
	instance.Status = v1alpha2.NginxOperatorStatus{}
	w.Inputs++
	_, err := w.Store.Update(found.Key, storage.ToMap(instance), "status")
	w.Must(err)
}
