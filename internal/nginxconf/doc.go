// Package nginxconf renders the nginx configuration of the operands and checks it before a Pod
// starts with it.
package nginxconf
