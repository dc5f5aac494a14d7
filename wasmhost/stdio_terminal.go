package wasmhost

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// terminalStat makes fd_fdstat_get tell programs in stream mode that their standard output is a terminal: the libraries of C, Python
// and others write line by line then, and else when a buffer is full, which would be too late. wazero itself has no
// such output.
type terminalStat struct{ wasiCharge }

func (s *terminalStat) Before(ctx context.Context, mod api.Module, f api.FunctionDefinition, params []uint64, stack experimental.StackIterator) {
	s.wasiCharge.Before(ctx, mod, f, params, stack)
	if t, ok := ctx.(*instance).talk.(*stdioStream); ok {
		t.asked, t.fdstat = uint32(params[0]) == 1, uint32(params[1])
	}
}

func (s *terminalStat) After(ctx context.Context, mod api.Module, _ api.FunctionDefinition, results []uint64) {
	t, ok := ctx.(*instance).talk.(*stdioStream)
	if !ok || !t.asked || results[0] != 0 {
		return
	}
	const characterDevice, seek, tell = 2, 1 << 2, 1 << 5 // filetype and rights of WASI: what cannot be sought is a terminal
	if stat, ok := mod.Memory().Read(t.fdstat, 24); ok {
		stat[0] = characterDevice
		binary.LittleEndian.PutUint64(stat[8:], binary.LittleEndian.Uint64(stat[8:])&^(seek|tell))
	}
}
