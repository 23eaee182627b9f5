package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"

	"github.com/fenceproxy/fenceproxy/lease"
)

// worker is a legacy program that knows nothing of fences: one session of the
// stock mariadb client, which reads statements from its standard input. Its
// configuration has the identity as an init command.
type worker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

func startWorker(ctx context.Context, addr string, claim lease.Claim) (*worker, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "mariadb",
		"--no-defaults", "--host="+host, "--port="+port, "--user=worker", "--password=legacy", "--skip-ssl",
		"--batch", "--skip-column-names", "--unbuffered", "--force",
		fmt.Sprintf("--init-command=SET @fence_owner = '%s', @fence_token = %d", claim.Owner, claim.Token),
		"app")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the mariadb client (apt-get install mariadb-client): %w", err)
	}
	return &worker{cmd: cmd, stdin: stdin, out: bufio.NewScanner(stdout)}, nil
}

// answered is printed by the client once it has run a statement.
const answered = "answered"

// execute runs one statement, and returns the server's error as the client
// prints it, or "".
func (w *worker) execute(statement string) (refusal string, err error) {
	if _, err := fmt.Fprintf(w.stdin, "%s;\nSELECT '%s';\n", statement, answered); err != nil {
		return "", err
	}
	for w.out.Scan() {
		switch line := w.out.Text(); {
		case line == answered:
			return refusal, nil
		case strings.HasPrefix(line, "ERROR"):
			refusal = line
		}
	}
	return "", fmt.Errorf("the mariadb client ended: %w", w.out.Err())
}

func (w *worker) stop() {
	_ = w.stdin.Close()
	_ = w.cmd.Wait()
}
