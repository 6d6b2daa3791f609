package validation

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validateContent rejects a file of spec.content whose path is the directory of another file. The
// kubelet could not mount both.
func validateContent(content *v1alpha2.Content, at *field.Path) field.ErrorList {
	if content == nil {
		return nil
	}

	directories := map[string]string{}
	for _, item := range content.ConfigMapRef.Items {
		for directory := path.Dir(item.Path); directory != "."; directory = path.Dir(directory) {
			directories[directory] = item.Path
		}
	}

	var errs field.ErrorList
	for i, item := range content.ConfigMapRef.Items {
		if other := directories[item.Path]; other != "" {
			errs = append(errs, invalid(at.Child("configMapRef", "items").Index(i).Child("path"), item.Path,
				fmt.Sprintf("must not be the directory of another file, %s; rename one of the two", bounded(other)))...)
		}
	}

	return errs
}
