package monitor

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// Monitor takes the proxy's reports. Its methods are safe for concurrent use,
// and fast enough for every statement.
type Monitor struct {
	log        *slog.Logger
	statements bool
	metrics    metrics
	// guardSeconds is metrics.guardSeconds by plan, looked up once.
	guardSeconds []prometheus.Observer
}

// Option changes what a Monitor does.
type Option func(*Monitor)

// WithStatements adds the rejected statement's text, with its literals taken out,
// to the log line. Names of tables and columns stay in it, so it has to be asked
// for (log.statements).
func WithStatements() Option { return func(m *Monitor) { m.statements = true } }

// New makes a Monitor that logs to log, and registers its metrics with reg. It
// panics when they are registered there already.
func New(log *slog.Logger, reg prometheus.Registerer, options ...Option) *Monitor {
	m := &Monitor{log: log, metrics: newMetrics(reg)}
	for _, k := range rewrite.Kinds() {
		m.guardSeconds = append(m.guardSeconds, m.metrics.guardSeconds.WithLabelValues(k.String()))
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// Reject reports a write that was rejected, or would have been (Observed).
func (m *Monitor) Reject(r Rejection) {
	m.metrics.rejected.WithLabelValues(
		tableLabel(r.Table), leaseLabel(r.Table, r.RuleLease), r.Reason.String(), r.Plan.String(), strconv.FormatBool(r.Observed),
	).Inc()
	m.logRejection(r)
}

// Guarded reports a write that its guard let through. added is the time that
// guarding took beyond what the statement itself did.
func (m *Monitor) Guarded(w rewrite.Write, k rewrite.Kind, added time.Duration) {
	m.metrics.guarded.WithLabelValues(tableLabel(w.Table), leaseLabel(w.Table, w.Lease), k.String()).Inc()
	m.guardSeconds[k].Observe(added.Seconds())
}

// Passed reports a statement that was sent on as it is.
func (m *Monitor) Passed() { m.metrics.passed.Inc() }

// Unfenced reports a write by a session without identity that its table's rule
// allows (on_unfenced: allow).
func (m *Monitor) Unfenced(w rewrite.Write) {
	m.metrics.unfenced.WithLabelValues(tableLabel(w.Table), leaseLabel(w.Table, w.Lease)).Inc()
}

// SessionOpened reports a client connection, and SessionClosed its end.
func (m *Monitor) SessionOpened() {
	m.metrics.sessions.Inc()
	m.metrics.sessionsTotal.Inc()
}

// SessionClosed ends what SessionOpened began.
func (m *Monitor) SessionClosed() { m.metrics.sessions.Dec() }

// BackendDialed reports an attempt to connect to the backend.
func (m *Monitor) BackendDialed(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.metrics.backendDials.WithLabelValues(result).Inc()
}
