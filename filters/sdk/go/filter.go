//go:build wasip1

package weir

// A Verdict is what happens to a message.
type Verdict int32

const (
	Keep   Verdict = 0  // it goes on, with the edits made
	Drop   Verdict = 1  // it is gone, counted as dropped; what was emitted behind it goes on
	Skip   Verdict = 2  // it goes on with the edits made, past the rest of this route's filters
	Reject Verdict = 3  // it goes to the dead letters, with the text of the last Fail or RejectFor
	Failed Verdict = -1 // what this call edited, emitted and routed is undone, and the filter's on_error decides
)

var (
	handle func(Message) Verdict
	start  func() error
	tick   func()
	stop   func()
)

// Handle registers what is called for each message. Call it in an init function. A panic is a failed message and
// costs the instance.
func Handle(f func(Message) Verdict) { handle = f }

// OnStart registers what is called once in each instance, before its first message: the place to read Config. An
// error refuses the module, with its text. Message, and setters of any kind, do not work there.
func OnStart(f func() error) { start = f }

// OnTick registers what is called about once a second in each instance, idle ones too, and once more before OnClose's.
// There is no message; Emit works.
func OnTick(f func()) { tick = f }

// OnClose registers what is called before the instance goes. It is not called after a panic.
func OnClose(f func()) { stop = f }

// Fail gives the reason for a failure and returns Failed, for "return weir.Fail(…)". At most 4 KiB are kept.
func Fail(reason string) Verdict {
	fail(reason)
	return Failed
}

// RejectFor gives the reason for the dead letter and returns Reject. At most 4 KiB are kept.
func RejectFor(reason string) Verdict {
	fail(reason)
	return Reject
}

//go:wasmexport weir_init
func weirInit() int32 {
	if handle == nil {
		fail("the filter has no handler: call weir.Handle in an init function (main is not run)")
		return 1
	}
	if start == nil {
		return 0
	}
	if err := start(); err != nil {
		fail(err.Error())
		return 1
	}
	return 0
}

//go:wasmexport weir_process
func weirProcess() int32 { return int32(handle(Message{})) }

//go:wasmexport weir_tick
func weirTick() {
	if tick != nil {
		tick()
	}
}

//go:wasmexport weir_close
func weirClose() {
	if stop != nil {
		stop()
	}
}
