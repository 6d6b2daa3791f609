package migrate

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"path"
	"slices"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// lua lets crossplane read and write the blocks of Lua code.
var lua = &crossplane.Lua{}

// http returns the content of the http block. It omits the includes that match one of the files,
// and returns their masks.
func (f *wholeFile) http(files []string) (text string, masks []string, err error) {
	block := slices.DeleteFunc(slices.Clone(f.block), func(directive *crossplane.Directive) bool {
		if directive.Directive != "include" || len(directive.Args) != 1 {
			return false
		}

		mask := directive.Args[0]
		if !path.IsAbs(mask) {
			mask = path.Join(f.directory, mask)
		}

		isOmitted := slices.ContainsFunc(files, func(file string) bool { return matches([]string{mask}, file) })
		if isOmitted {
			masks = append(masks, mask)
		}
		return isOmitted
	})

	text, err = build(block)
	return text, masks, err
}

// needsQuotes starts a word until build removes it. It is random, so a configuration cannot have it.
// Its space makes crossplane quote the word.
var needsQuotes = " " + rand.Text()

// build returns the text of directives.
func build(block crossplane.Directives) (string, error) {
	if len(block) == 0 {
		return "", nil
	}

	quoteHashes(block)
	var built bytes.Buffer
	options := &crossplane.BuildOptions{Indent: 2, Builders: []crossplane.RegisterBuilder{lua.RegisterBuilder()}}
	if err := crossplane.Build(&built, crossplane.Config{Parsed: block}, options); err != nil {
		return "", fmt.Errorf("failed to write the configuration: %w", err)
	}
	return strings.TrimSpace(strings.ReplaceAll(built.String(), needsQuotes, "")) + "\n", nil
}

// quoteHashes marks the words that start with #. crossplane would write them without quotes, and
// nginx would read comments.
func quoteHashes(block crossplane.Directives) {
	quote := func(word *string) {
		if strings.HasPrefix(*word, "#") {
			*word = needsQuotes + *word
		}
	}
	for _, d := range block {
		if !d.IsComment() {
			quote(&d.Directive)
		}
		for i := range d.Args {
			quote(&d.Args[i])
		}
		quoteHashes(d.Block)
	}
}
