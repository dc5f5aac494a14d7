package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/wasmhost"
)

// plan is what /status knows before anything moves.
func (p *plant) plan(s *settings, doc *config.Document) admin.Status {
	out := admin.Status{
		Program: admin.ProgramStatus{Version: version, Commit: commit(), PID: os.Getpid(), Started: time.Now().UTC().Truncate(time.Millisecond), StateDir: absolute(s.StateDir), Configuration: []string{}},
		Memory:  admin.MemoryStatus{Machine: uint64(max(0, wasmhost.MachineMemory()))},
	}
	for _, name := range doc.Files() {
		if name != builtinName {
			out.Program.Configuration = append(out.Program.Configuration, absolute(name))
		}
	}
	for i, e := range s.Sources {
		out.Sources = append(out.Sources, admin.SourceStatus{Name: e.Name, Listen: p.sources[i].Addrs()})
	}
	for _, e := range s.Routes {
		out.Routes = append(out.Routes, admin.RouteStatus{Name: e.Name, From: e.Value.From, Filters: e.Value.Filters, To: e.Value.To})
	}
	for _, e := range s.Filters {
		out.Filters = append(out.Filters, admin.FilterStatus{Name: e.Name, Module: e.Value.Module})
	}
	for _, e := range s.Destinations {
		out.Destinations = append(out.Destinations, admin.DestinationStatus{Name: e.Name, Kind: e.Value.kind.key, FlushTimeout: e.Value.FlushTimeout.Seconds()})
	}
	return out
}

// absolute is a path as others see it, whatever directory they are in.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
