//go:build unix

package routertest

import (
	"fmt"
	"testing"
	"time"
)

// An Attack disturbs a server while somebody writes to it.
type Attack struct {
	Server   *PostgresServer
	Database string
	// Stored is how many rows the writer knows to be stored. Between two blows the
	// attack waits until there are more, so that each meets a writer at work.
	Stored func() uint64

	Kills        int // the server crashes (StopImmediate) and is started again
	Terminations int // all other sessions of the database are ended (pg_terminate_backend)
}

// Run deals the blows, those of both kinds mixed evenly, and returns when the last has been dealt and
// something was stored after it.
func (a Attack) Run(t testing.TB) {
	t.Helper()
	kills, terminations := a.Kills, a.Terminations
	for n := 0; kills+terminations > 0; n++ {
		a.waitForMore(t, uint64(n%7)) // not always in the same phase of a transaction
		if kills*max(1, a.Terminations) >= terminations*max(1, a.Kills) && kills > 0 {
			kills--
			a.Server.Stop(StopImmediate)
			a.Server.Start(t)
			continue
		}
		terminations--
		a.Server.Exec(t, a.Server.DSN("postgres"), fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s' AND pid <> pg_backend_pid()", a.Database))
	}
	a.waitForMore(t, 0)
}

func (a Attack) waitForMore(t testing.TB, beyond uint64) {
	t.Helper()
	before := a.Stored()
	for end := time.Now().Add(2 * time.Minute); a.Stored() <= before+beyond; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing was stored for two minutes after row %d", before)
		}
	}
}
