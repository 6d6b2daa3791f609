package resolve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
)

// ReadFiles returns a function that reads the files of resolved inputs. Files that an earlier
// reconcile read are read again, because only their hash is remembered. The function returns a
// conflict if they have changed since.
func (r Resolver) ReadFiles(object *v1alpha2.NginxOperator, in operand.Inputs) func(context.Context) (operand.Files, error) {
	return func(ctx context.Context) (operand.Files, error) {
		files := operand.Files{Config: in.Config.Files}
		if files.Config == nil {
			source, servers, err := r.readServers(ctx, object)
			if err != nil {
				return files, err
			}

			rendered, _ := r.render(object, servers)
			if err := sameHash(source, rendered.Hash, in.Config.Hash); err != nil {
				return files, err
			}

			files.Config = rendered.Files
		}

		if in.Content != nil {
			content := *in.Content
			if content.Text == nil && content.Binary == nil {
				ref := &object.Spec.Content.ConfigMapRef
				source, err := r.readConfigMap(ctx, object, ref.Name)
				if err != nil {
					return files, err
				}

				content = operand.NewContent(source, ref.Items)
				if err := sameHash(source, content.Hash, in.Content.Hash); err != nil {
					return files, err
				}
			}
			files.Text, files.Binary = content.Text, content.Binary
		}

		directories, err := r.readDirectories(ctx, object, in)
		files.Directories = directories
		if in.Files == nil || err != nil {
			return files, err
		}

		declared, err := r.readDeclaredFiles(ctx, object, in)
		files.FileText, files.FileBinary = declared.Text, declared.Binary
		return files, err
	}
}

// readDeclaredFiles reads the files of spec.files from ConfigMaps. It returns a conflict if they
// have changed since their hash was computed.
func (r Resolver) readDeclaredFiles(
	ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs,
) (operand.Content, error) {
	texts := map[string][]byte{}
	var source *corev1.ConfigMap
	for _, file := range object.Spec.Files {
		if file.ConfigMapRef == nil || nginxconf.HasMask(file) {
			continue
		}

		var err error
		if source, err = r.readConfigMap(ctx, object, file.ConfigMapRef.Name); err != nil {
			return operand.Content{}, err
		}

		texts[file.Path], _ = operand.KeyOf(source, file.ConfigMapRef.Key)
	}

	files := operand.NewDeclaredFiles(texts)
	return files, sameHash(source, files.Hash, in.Files.Hash)
}

// readDirectories reads the files of the masks in spec.files, by the path of their directory. It
// returns a conflict if they have changed since their hash was computed.
func (r Resolver) readDirectories(
	ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs,
) (map[string]operand.Content, error) {
	if len(in.Directories) == 0 {
		return nil, nil
	}

	hashes, directories := map[string]string{}, map[string]operand.Content{}
	for _, directory := range in.Directories {
		hashes[directory.Path] = directory.Hash
	}

	for _, file := range object.Spec.Files {
		if !nginxconf.HasMask(file) {
			continue
		}

		source, err := r.readConfigMap(ctx, object, file.ConfigMapRef.Name)
		if err != nil {
			return nil, err
		}

		directory := operand.NewDirectory(file, source)
		if err := sameHash(source, directory.Hash, hashes[file.Path]); err != nil {
			return nil, err
		}
		directories[file.Path] = directory.Content
	}

	return directories, nil
}

// readServers reads the server blocks of a spec with their values, and the ConfigMap that has them, if
// they are not inline.
func (r Resolver) readServers(ctx context.Context, object *v1alpha2.NginxOperator) (*corev1.ConfigMap, nginxconf.Servers, error) {
	source, servers := &corev1.ConfigMap{}, nginxconf.Whole(object.Spec.Config.Inline)
	values, err := r.readValues(ctx, object, &resolution{})
	if ref := object.Spec.Config.ConfigMapRef; ref != nil && err == nil {
		source, err = r.readConfigMap(ctx, object, ref.Name)
		servers, _ = serversIn(source, ref)
	}
	servers, _, _ = servers.Expand(&object.Spec, values)
	return source, servers, err
}

// readConfigMap reads a ConfigMap. It returns a conflict if the ConfigMap no longer exists.
func (r Resolver) readConfigMap(ctx context.Context, object *v1alpha2.NginxOperator, name string) (*corev1.ConfigMap, error) {
	source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
	exists, err := r.ConfigMaps.Read(ctx, source)
	if err == nil && !exists {
		err = changedSince(source)
	}
	return source, err
}

// sameHash returns a conflict if two hashes differ.
func sameHash(source *corev1.ConfigMap, current, remembered string) error {
	if current != remembered {
		return changedSince(source)
	}
	return nil
}

// changedSince returns the conflict for content that has changed since its hash was computed. The
// reconcile is repeated.
func changedSince(source *corev1.ConfigMap) error {
	cause := errors.New("it has changed since its hash was computed, so the reconcile is repeated")
	return apierrors.NewConflict(corev1.Resource("configmaps"), source.Name, cause)
}

// readTexts reads the texts of spec.files from ConfigMaps, by their path. It returns the spec with
// a file for each key that a mask matches, in addition to the mask.
func (r Resolver) readTexts(
	ctx context.Context, object *v1alpha2.NginxOperator, in operand.Inputs,
) (*v1alpha2.NginxOperatorSpec, map[string]string, error) {
	texts, spec := map[string]string{}, object.Spec
	if in.Files != nil {
		files, err := r.readDeclaredFiles(ctx, object, in)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range object.Spec.Files {
			if text, isText := files.Text[operand.CopiedKey(file.Path)]; isText {
				texts[file.Path] = text
			}
		}
	}

	directories, err := r.readDirectories(ctx, object, in)
	spec.Files = slices.Clone(spec.Files)
	for at, directory := range directories {
		for key, text := range directory.Text {
			texts[path.Join(at, key)] = text
		}
		for _, key := range slices.Concat(slices.Collect(maps.Keys(directory.Text)), slices.Collect(maps.Keys(directory.Binary))) {
			spec.Files = append(spec.Files, v1alpha2.File{Path: path.Join(at, key)})
		}
	}

	masks := len(object.Spec.Files)
	slices.SortFunc(spec.Files[masks:], func(a, b v1alpha2.File) int { return cmp.Compare(a.Path, b.Path) })
	return &spec, texts, err
}
