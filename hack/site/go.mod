// The site of the documentation, with a browser to check it: dependencies that the operator's module is not to have.
module github.com/example/nginx-operator/hack/site

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.3
	github.com/chromedp/chromedp v0.23.0
	github.com/google/go-cmp v0.7.0
	golang.org/x/net v0.60.0
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
