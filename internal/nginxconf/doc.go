// Package nginxconf makes the nginx configuration of the operands, and finds out before a Pod does whether nginx would
// take it.
package nginxconf
