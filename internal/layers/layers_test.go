// Package layers checks which packages import which (docs/architecture.md).
package layers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fenceproxy/fenceproxy/"

// allowed are the packages of this module that each may import. Tests may import
// more.
var allowed = map[string][]string{
	"rewrite":         {},
	"lease":           {},
	"proxy/wire":      {},
	"migrations":      {},
	"internal/dbtest": {},
	"internal/child":  {},
	"internal/dsn":    {},
	"config":          {"lease", "rewrite"},
	"monitor":         {"rewrite"},
	"catalogue":       {"rewrite"},
	"proxy":           {"lease", "monitor", "proxy/wire", "rewrite"},
}

func TestImportsPointOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module)
		may, listed := allowed[name]
		if !listed {
			continue
		}
		seen[name] = true
		for _, imported := range fields[1:] {
			inner, ours := strings.CutPrefix(imported, module)
			if ours && !slices.Contains(may, inner) {
				t.Errorf("%s imports %s", name, inner)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("there is no package %s", name)
		}
	}
}
