package wasmhost

import (
	"context"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A profile tells in which of a guest's functions its units are spent. With [Guest.CountExactly] every block of a function
// ticks, with what it takes; what else was spent since the last tick are calls to the host.
type profile struct {
	at    string            // the guest's function that ticks
	takes uint64            // units of its block
	mark  uint64            // units that are in the sums
	units map[string]uint64 // by function; "" is the host's
}

// profiler listens to the ticks of all guests.
type profiler struct{}

func (profiler) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	return profiler{}
}

func (profiler) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, params []uint64, stack experimental.StackIterator) {
	in, ok := ctx.(*instance)
	if !ok {
		return
	}
	p := &in.guest.profile
	p.at = ""
	if stack.Next() && stack.Next() { // tick itself, and who called it
		p.at = strings.TrimPrefix(stack.Function().Definition().DebugName(), ".") // modules have no name
	}
	p.takes = uint64(max(1-int64(api.DecodeI32(params[0])), 0)) // one unit was granted
	if n := in.clock.Units(); n < p.mark {                      // of a new instance
		p.mark = n
	}
}

func (profiler) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64) {
	in, ok := ctx.(*instance)
	if !ok {
		return
	}
	p := &in.guest.profile
	if p.units == nil {
		p.units = map[string]uint64{}
	}
	spent := in.clock.Units() - p.mark
	block := min(p.takes, spent)
	p.units[p.at] += block
	p.units[""] += spent - block
	p.mark += spent
}

func (profiler) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// TakeProfile returns the units that were spent in each of the guest's functions since it was last called, by the names that
// the module has for them; "" stands for the host's functions. They are exact after [Guest.CountExactly] said so. Only a host
// with Options.Profile has any.
func (g *Guest) TakeProfile() map[string]uint64 {
	units := g.profile.units
	g.profile.units = nil
	return units
}
