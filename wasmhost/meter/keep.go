package meter

import "unsafe"

// kept is an exception that a running function may still refer to.
type kept struct {
	exception         unsafe.Pointer
	depth, activation uint32
}

// Keep answers the guest's call of weir_meter.keep: a catch clause of a function at some depth of the stack, a
// number of its own for each activation, has given the guest the reference at stack[0], which is also the answer. The host
// provides it where [Limits].Exceptions is set, (exnref, i32, i32) -> (exnref), [Exnref] being wazero's type of it:
//
//	func(ctx context.Context, _ api.Module, stack []uint64) {
//		ctx.(*instance).clock.Keep(stack)
//	}
//
// wazero keeps only the latest exception alive for the collector; the Clock keeps it until its function has ended,
// which shows when another one catches at the same depth or above. It stops the guest when there are too many.
func (c *Clock) Keep(stack []uint64) {
	k := kept{depth: uint32(stack[1]), activation: uint32(stack[2])}
	k.exception = *(*unsafe.Pointer)(unsafe.Pointer(&stack[0]))
	n := len(c.kept)
	for ; n > 0; n-- {
		if last := c.kept[n-1]; last.depth < k.depth || last.depth == k.depth && last.activation == k.activation {
			break
		}
	}
	clear(c.kept[n:])
	c.kept = c.kept[:n]
	if k.exception == nil || n > 0 && c.kept[n-1] == k {
		return
	}
	if n == maxThrown {
		panic(c.exceeded(Exceptions))
	}
	c.kept = append(c.kept, k)
}
