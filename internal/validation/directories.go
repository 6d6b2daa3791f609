package validation

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
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

// validateFiles rejects a file of spec.files in the first directory of a mask. The directory of a
// mask is a volume of its own, and the kubelet cannot mount other files next to it.
func validateFiles(files []v1alpha2.File, at *field.Path) field.ErrorList {
	first := func(file v1alpha2.File) string { top, _, _ := strings.Cut(file.Path, "/"); return top }
	masks := map[string]string{}
	for _, file := range files {
		if nginxconf.HasMask(file) {
			masks[first(file)] = file.Path
		}
	}

	var errs field.ErrorList
	for i, file := range files {
		if mask := masks[first(file)]; mask != "" && !nginxconf.HasMask(file) {
			errs = append(errs, invalid(at.Index(i).Child("path"), file.Path, fmt.Sprintf(
				"conflicts with %s, which has the keys that a mask matches; write a path in another directory", mask))...)
		}
	}

	return errs
}
