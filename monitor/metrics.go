package monitor

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fenceproxy/fenceproxy/rewrite"
)

// sessionLease is the lease label of a rule that takes the lease from the
// session: the same word as in the configuration.
const sessionLease = "${session}"

// noTable is the table and lease label of a statement that was rejected without
// naming a protected table.
const noTable = "none"

// guardBuckets, in seconds, reach from the parse alone to a guard that waited for
// a lock. A guard costs some 50 microseconds on loopback and a round trip or two
// elsewhere.
var guardBuckets = []float64{
	25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1, 5,
}

// metrics are the collectors. All labels come from closed sets: the rules' tables
// and leases, plans, and reasons.
type metrics struct {
	rejected      *prometheus.CounterVec
	guarded       *prometheus.CounterVec
	guardSeconds  *prometheus.HistogramVec
	unfenced      *prometheus.CounterVec
	passed        prometheus.Counter
	sessions      prometheus.Gauge
	sessionsTotal prometheus.Counter
	backendDials  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fenceproxy_rejected_statements_total",
			Help: "Writes that were rejected, or with observed=true would have been.",
		}, []string{"table", "lease", "reason", "plan", "observed"}),
		guarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fenceproxy_guarded_statements_total",
			Help: "Writes to protected tables that their guard let through.",
		}, []string{"table", "lease", "plan"}),
		guardSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fenceproxy_guard_seconds",
			Help:    "Time that guarding added to a write.",
			Buckets: guardBuckets,
		}, []string{"plan"}),
		unfenced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fenceproxy_unfenced_statements_total",
			Help: "Writes to protected tables by sessions without identity, allowed by on_unfenced.",
		}, []string{"table", "lease"}),
		passed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fenceproxy_passed_statements_total",
			Help: "Statements that were sent on as they are.",
		}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fenceproxy_sessions",
			Help: "Client connections that are open.",
		}),
		sessionsTotal: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fenceproxy_sessions_total",
			Help: "Client connections since the start.",
		}),
		backendDials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fenceproxy_backend_dials_total",
			Help: "Attempts to connect to the backend.",
		}, []string{"result"}),
	}
	build := ReadBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "fenceproxy_build_info",
		Help:        "Always 1; the labels tell which build is running.",
		ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "go_version": build.Go},
	})
	info.Set(1)
	reg.MustRegister(
		m.rejected, m.guarded, m.guardSeconds, m.unfenced, m.passed,
		m.sessions, m.sessionsTotal, m.backendDials, info,
	)
	for _, result := range []string{"ok", "error"} {
		m.backendDials.WithLabelValues(result)
	}
	return m
}

// NewRegistry makes a registry that has the Go runtime's and the process's own
// metrics.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

func tableLabel(t rewrite.Table) string {
	if t == (rewrite.Table{}) {
		return noTable
	}
	return t.String()
}

func leaseLabel(t rewrite.Table, ruleLease string) string {
	if t == (rewrite.Table{}) {
		return noTable
	}
	if ruleLease == "" {
		return sessionLease
	}
	return ruleLease
}
