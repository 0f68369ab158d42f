// Reads a board of Grafana strictly, by the schema that Grafana publishes, and checks its values.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		var board dashboard.Dashboard
		err = board.UnmarshalJSONStrict(text)
		if !isFault(err) {
			err = board.Validate()
		}
	}
	if isFault(err) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// An empty list of faults is an error that is not nil.
func isFault(err error) bool {
	return err != nil && err.Error() != ""
}
