package monitor

import "runtime/debug"

// Build tells which build of the program is running.
type Build struct {
	// Version is the module's version, "(devel)" for a build from a work tree
	// that is at no tag.
	Version string `json:"version"`
	// Commit is the version control's id of the source, with "+changes" when the
	// work tree differed from it; "unknown" when Go did not record it.
	Commit string `json:"commit"`
	Go     string `json:"go"`
}

// ReadBuild reads what the Go toolchain recorded in the program.
func ReadBuild() Build {
	b := Build{Version: "(devel)", Commit: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed {
		b.Commit += "+changes"
	}
	return b
}
