package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// output is the value of -o: how a command prints its data.
type output string

const (
	outputText output = "text"
	outputJSON output = "json"
)

// outputFlag adds -o to a command.
func outputFlag(c *cobra.Command) *output {
	o := outputText
	c.Flags().VarP(&o, "output", "o", "`FORMAT` of the output: text or json")
	return &o
}

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "format" }

func (o *output) Set(text string) error {
	switch output(text) {
	case outputText, outputJSON:
		*o = output(text)
		return nil
	}
	return fmt.Errorf("it is text or json")
}

// printJSON prints v for machines.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// printTable prints rows in columns; the first row is the heading.
func printTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				_, _ = fmt.Fprint(table, "\t")
			}
			_, _ = fmt.Fprint(table, cell)
		}
		_, _ = fmt.Fprintln(table)
	}
	return table.Flush()
}
