package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
)

func newReloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make a running weir read its filters' modules again",
		Long: `Reload asks the weir that runs with this configuration, by its admin address,
to read the modules of its filters again. A module that has changed is judged,
compiled and started beside the old one and takes over between two batches; one
that is refused leaves the old one at work, and the exit code is 1.

weir finds changed modules by itself within a few seconds; this command waits
until it is done, and tells what came of it.`,
		Args: cobra.NoArgs,
	}
	addConfigFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, doc := loadSettings(c)
		if doc.Err() != nil {
			return refuse(c, doc)
		}
		s.resolve(doc)
		if s.Admin == nil {
			return usagef("this configuration has no admin: section, by which weir could be asked; kill -HUP does the same")
		}
		all, err := askReload(c.Context(), s.Admin)
		if err != nil {
			return err
		}
		refused := false
		for _, r := range all {
			switch {
			case r.Error != "":
				refused = true
				fmt.Fprintf(c.OutOrStdout(), "%s: refused, the one before it goes on: %s\n", r.Filter, r.Error)
			case r.Changed:
				fmt.Fprintf(c.OutOrStdout(), "%s: changed\n", r.Filter)
			default:
				fmt.Fprintf(c.OutOrStdout(), "%s: the same since %s\n", r.Filter, r.Loaded.Local().Format(time.DateTime))
			}
		}
		if refused {
			return errSaid
		}
		return nil
	}
	return c
}

// askReload waits for as long as compiling may take.
func askReload(ctx context.Context, at *admin.Config) (all []admin.Reloaded, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return at.Dial(ctx) },
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://weir/reload", nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask weir: %w (does it run with this configuration?)", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusUnprocessableEntity {
		return nil, fmt.Errorf("ask weir: it answered %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("read weir's answer: %w", err)
	}
	return all, nil
}
