// Package manifests_test reads what engines of containers read. It builds the overlays of deploy/kubernetes as kubectl apply -k does, and reads each object strictly as the type that
// the API server would: an unknown field, a number in the place of a text or a reference that leads nowhere fails. It needs no cluster, and
// judges nothing that only one knows.
package manifests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const manifests = "../../kubernetes"

// objects are those of an overlay, by kind.
type objects struct {
	deployments []apps.Deployment
	jobs        []batch.Job
	services    []core.Service
	configs     []core.ConfigMap
	accounts    []core.ServiceAccount
	budgets     []policy.PodDisruptionBudget
	policies    []networking.NetworkPolicy
	foreign     []string // kinds of operators
}

// strictly reads an object as what it must be.
func strictly[T any](t *testing.T, text []byte, into *[]T) {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	*into = append(*into, object)
}

func build(t *testing.T, overlay string) (all objects) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(manifests, "overlays", overlay))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range built.Resources() {
		text := []byte(one.MustYaml())
		if one.GetNamespace() == "" {
			t.Errorf("%s has no namespace", one.GetName())
		}
		switch one.GetKind() {
		case "Deployment":
			strictly(t, text, &all.deployments)
		case "Job":
			strictly(t, text, &all.jobs)
		case "Service":
			strictly(t, text, &all.services)
		case "ConfigMap":
			strictly(t, text, &all.configs)
		case "ServiceAccount":
			strictly(t, text, &all.accounts)
		case "PodDisruptionBudget":
			strictly(t, text, &all.budgets)
		case "NetworkPolicy":
			strictly(t, text, &all.policies)
		default:
			all.foreign = append(all.foreign, one.GetKind())
		}
	}
	return all
}

func overlays(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(manifests, "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	for _, name := range overlays(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := build(t, name)
			if len(all.deployments) != 1 || len(all.jobs) != 1 || len(all.services) != 3 || len(all.configs) != 1 || len(all.budgets) != 1 || len(all.policies) != 1 {
				t.Fatalf("built %+v", all)
			}
			if slices.ContainsFunc(all.foreign, func(kind string) bool { return kind != "CrdbCluster" }) {
				t.Errorf("nothing judges %q", all.foreign)
			}
			judge(t, all)
		})
	}
}

// judge follows references, and holds every container to the rules of the restricted profile.
func judge(t *testing.T, all objects) {
	t.Helper()
	d := all.deployments[0]
	pod := d.Spec.Template
	ports := map[string]bool{}
	for _, port := range pod.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	for _, s := range all.services {
		for _, port := range s.Spec.Ports {
			if !ports[port.TargetPort.StrVal] || !selects(s.Spec.Selector, pod.Labels) || selects(s.Spec.Selector, all.jobs[0].Spec.Template.Labels) {
				t.Errorf("the service %s leads to %s of %v", s.Name, port.TargetPort.StrVal, s.Spec.Selector)
			}
		}
	}
	for _, rule := range all.policies[0].Spec.Ingress {
		for _, port := range rule.Ports {
			if !ports[port.Port.StrVal] {
				t.Errorf("the network policy lets %s in, which nothing listens on", port.Port.StrVal)
			}
		}
	}
	if !selects(d.Spec.Selector.MatchLabels, pod.Labels) || !selects(all.budgets[0].Spec.Selector.MatchLabels, pod.Labels) {
		t.Error("the deployment or its budget selects other pods")
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name != all.configs[0].Name {
			t.Errorf("the configuration is %s, and %s is mounted", all.configs[0].Name, volume.ConfigMap.Name)
		}
	}
	for _, probe := range []*core.Probe{pod.Spec.Containers[0].StartupProbe, pod.Spec.Containers[0].LivenessProbe, pod.Spec.Containers[0].ReadinessProbe} {
		if probe == nil || !ports[probe.HTTPGet.Port.StrVal] || !slices.Contains([]string{"/healthz", "/readyz"}, probe.HTTPGet.Path) {
			t.Errorf("the probe %+v", probe)
		}
	}
	if got, want := secretsOf(all.jobs[0].Spec.Template.Spec), secretsOf(pod.Spec); got == "" || got != want {
		t.Errorf("the migration has the secrets at %q, the gateway at %q: the database's URL names files there", got, want)
	}
	for _, spec := range []core.PodSpec{pod.Spec, all.jobs[0].Spec.Template.Spec} {
		restricted(t, spec, all.accounts[0].Name)
	}
}

// secretsOf is where a pod's container has its secret.
func secretsOf(spec core.PodSpec) string {
	for _, v := range spec.Volumes {
		for _, m := range spec.Containers[0].VolumeMounts {
			if v.Secret != nil && v.Name == m.Name {
				return v.Secret.SecretName + " " + m.MountPath
			}
		}
	}
	return ""
}

func restricted(t *testing.T, spec core.PodSpec, account string) {
	t.Helper()
	p := spec.SecurityContext
	if spec.ServiceAccountName != account || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("the pod has an account's token")
	}
	if p == nil || p.RunAsNonRoot == nil || !*p.RunAsNonRoot || p.SeccompProfile == nil || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod runs as %+v", p)
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("%s may do %+v", c.Name, s)
		}
		if !strings.Contains(c.Image, "/gerbang:") {
			t.Errorf("%s runs the image %s", c.Name, c.Image)
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}
