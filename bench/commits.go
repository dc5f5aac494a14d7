package main

import (
	"context"
	"fmt"
)

// commits is the experiment that started explicit commits: a transaction for
// each row, as the database does by itself, against one for a thousand.
func commits(ctx context.Context, l *lab) error {
	const journal = "    session_statements: [\"PRAGMA journal_mode = DELETE\"]\n    flush_lines: 1000\n    flush_timeout: 200ms\n"
	run := func(more string) func(context.Context, *lab, int) (result, error) {
		return func(ctx context.Context, l *lab, n int) (result, error) {
			return l.intoSQLite(ctx, n, narrowTable, func(dir string, db sqliteFile) (*running, error) {
				if err := db.create(narrowSQL); err != nil {
					return nil, err
				}
				return l.startWeir(ctx, dir, weirConfig{destination: weirInto("sqlite", string(db), journal+more)})
			})
		}
	}
	fmt.Println()
	return l.compare(ctx, []contender{
		{name: "explicit_commits: true", messages: 1_000_000, run: run("    explicit_commits: true\n")},
		{name: "explicit_commits: false", messages: 5_000, run: run("    explicit_commits: false\n")},
	})
}
