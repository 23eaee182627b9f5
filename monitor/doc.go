// Package monitor makes visible what the proxy decided; it decides nothing.
//
// A [Monitor] counts statements, sessions and rejections, and writes one log line
// a rejection. The client's error text is made here too ([Rejection.Message]), so
// that a person who has the error finds the log line and the metric of the same
// reason. docs/metrics.md lists every metric.
package monitor
