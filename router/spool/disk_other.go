//go:build !linux

package spool

import "os"

func syncData(f *os.File) error { return f.Sync() }

func lock(*os.File) error { return nil }

func freeBytes(string) (int64, bool) { return 0, false }
