//go:build !unix

package deadletter

import "os"

// lock does nothing here: nothing keeps a second replay away.
func lock(*os.File) error { return nil }
