package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/openapi/openapitest"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A kind of objects has a Go type and a schema.
type kind struct {
	object func() any
	schema func() (*spec.Schema, error)
}

var kinds = map[string]kind{
	"v1 Service": {
		func() any { return new(corev1.Service) },
		sync.OnceValues(func() (*spec.Schema, error) { return kubernetesSchema("api/v1", "io.k8s.api.core.v1.Service") }),
	},
	"batch/v1 Job": {
		func() any { return new(batchv1.Job) },
		sync.OnceValues(func() (*spec.Schema, error) { return kubernetesSchema("apis/batch/v1", "io.k8s.api.batch.v1.Job") }),
	},
	"jobset.x-k8s.io/v1alpha2 JobSet": {
		func() any { return new(jobsetv1alpha2.JobSet) },
		sync.OnceValues(jobSetSchema),
	},
}

// parse returns the object of a document, which its Go type and its schema allow.
func parse(document string) (any, error) {
	text, err := yaml.YAMLToJSONStrict([]byte(document)) // no key twice
	if err != nil {
		return nil, err
	}
	var meta metav1.TypeMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	k, known := kinds[meta.APIVersion+" "+meta.Kind]
	if !known {
		return nil, fmt.Errorf("%s %s: want a Service, a Job or a JobSet", meta.APIVersion, meta.Kind)
	}
	object := k.object()
	strict, err := kjson.UnmarshalStrict(text, object) // no unknown key
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	schema, err := k.schema()
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(plain)
	return object, errors.Join(result.Errors...)
}

// kubernetesSchema returns a schema of those that an API server publishes at a path.
func kubernetesSchema(path, name string) (*spec.Schema, error) {
	paths, err := openapitest.NewEmbeddedFileClient().Paths()
	if err != nil {
		return nil, err
	}
	text, err := paths[path].Schema("application/json")
	if err != nil {
		return nil, err
	}
	var published struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &published); err != nil {
		return nil, err
	}
	schema, err := inline(published.Components.Schemas, map[string]any{"$ref": refPrefix + name})
	if err != nil {
		return nil, err
	}
	return toSchema(schema)
}

const refPrefix = "#/components/schemas/"

// inline replaces references by what they refer to, which the validator does not follow.
func inline(schemas map[string]any, value any) (_ any, err error) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			schema, found := schemas[strings.TrimPrefix(ref, refPrefix)]
			if !found {
				return nil, fmt.Errorf("there is no schema %s", ref)
			}
			return inline(schemas, schema)
		}
		for key, part := range v {
			if v[key], err = inline(schemas, part); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, part := range v {
			if v[i], err = inline(schemas, part); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func toSchema(value any) (*spec.Schema, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	schema := new(spec.Schema)
	return schema, json.Unmarshal(text, schema)
}

// jobSetSchema returns the schema in JobSet's own definition of its kind.
func jobSetSchema() (*spec.Schema, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"))
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema any }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	for _, v := range definition.Spec.Versions {
		if v.Name == jobsetv1alpha2.GroupVersion.Version {
			return toSchema(v.Schema.OpenAPIV3Schema)
		}
	}
	return nil, fmt.Errorf("JobSet's definition has no version %s", jobsetv1alpha2.GroupVersion.Version)
}
