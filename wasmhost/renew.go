package wasmhost

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// exported is a function that the guest exports, to be called again and again; nil if there is none. wazero keeps a
// stack with each such handle, and with every exception that is caught the stack gets 16 bytes longer and is copied
// whole by the next try_table. Where exceptions are allowed, the handle is therefore taken anew for each call.
func (in *instance) exported(name string) api.Function {
	f := in.mod.ExportedFunction(name)
	if f == nil || !in.program.settings.Exceptions {
		return f
	}
	return renewed{f, in.mod, name}
}

type renewed struct {
	api.Function
	mod  api.Module
	name string
}

func (r renewed) CallWithStack(ctx context.Context, stack []uint64) error {
	return r.mod.ExportedFunction(r.name).CallWithStack(ctx, stack)
}

func (r renewed) Call(ctx context.Context, params ...uint64) ([]uint64, error) {
	return r.mod.ExportedFunction(r.name).Call(ctx, params...)
}
