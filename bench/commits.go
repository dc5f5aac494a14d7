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
			return l.weirSQLite(ctx, n, false, journal+more)
		}
	}
	fmt.Println()
	return l.compare(ctx, []contender{
		{"explicit_commits: true", 1_000_000, run("    explicit_commits: true\n")},
		{"explicit_commits: false", 5_000, run("    explicit_commits: false\n")},
	})
}
