package monitor

import (
	"context"
	"log/slog"
	"strconv"
)

// logRejection writes one line. Keys never change; one whose value is not known
// is left out. Tokens are text: a session's may be anything, and a number of
// 64 bits does not survive every JSON reader.
func (m *Monitor) logRejection(r Rejection) {
	level, event := slog.LevelWarn, "write rejected"
	if r.Observed {
		level, event = slog.LevelInfo, "write would be rejected"
	}
	ctx := context.Background()
	if !m.log.Enabled(ctx, level) {
		return
	}
	line := slog.NewRecord(r.Time, level, event, 0)
	line.AddAttrs(slog.Uint64("session", r.Session))
	addText(&line, "client", r.Client)
	addText(&line, "user", r.User)
	addText(&line, "program", r.Program)
	addText(&line, "database", r.Database)
	if r.Table.Name != "" {
		addText(&line, "table", r.Table.String())
	}
	addText(&line, "lease", r.Lease)
	addText(&line, "owner", r.Owner)
	addText(&line, "token", r.Token)
	if r.HasLease {
		line.AddAttrs(
			slog.String("current_owner", r.CurrentOwner),
			slog.String("current_token", strconv.FormatUint(r.CurrentToken, 10)),
			slog.String("leased_until", r.LeasedUntil.UTC().Format(timeFormat)),
		)
	}
	addText(&line, "plan", r.Plan.String())
	addText(&line, "reason", r.Reason.String())
	addText(&line, "digest", r.Digest)
	if m.statements {
		addText(&line, "statement", r.Statement)
	}
	addText(&line, "detail", r.Detail)
	// A log that cannot be written has nobody to be told.
	_ = m.log.Handler().Handle(ctx, line)
}

// timeFormat has the lease table's precision.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func addText(line *slog.Record, key, text string) {
	if text != "" {
		line.AddAttrs(slog.String(key, text))
	}
}
