package wasmhost

import (
	"bytes"
	"context"
	"math"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

// An ownership tells what of the message is a copy that the call in hand has made, and may change in place. All else is
// shared: with copies of the message on other routes, and with what undo puts back.
type ownership struct {
	fields   bool          // m.Fields
	elements bool          // m.Structured
	params   *router.Param // the first of the parameters that were copied last
}

// edit gives the message to be changed. It is copied at the first edit of a call, so that a failure can take it back.
func (in *instance) edit() *router.Message {
	if !in.edited {
		in.saved, in.edited, in.own = *in.m, true, ownership{}
	}
	return in.m
}

// store keeps a copy of val in the batch; false: there is no room. When old is a value that this call has stored, its
// place is used again, so that a guest which sets a value over and over does not fill the batch.
func (in *instance) store(old, before, val []byte) ([]byte, bool) {
	if !in.shared && len(val) > 0 && len(old) >= len(val) && unsafe.SliceData(old) != unsafe.SliceData(before) {
		old = old[:len(val)]
		copy(old, val)
		return old, true
	}
	b := in.batch.Copy(val)
	return b, b != nil
}

// set gives the message's own key or a field a value. What v points to is the guest's, or scratch.
func (in *instance) set(key []byte, v router.Value) int32 {
	if len(v.Bytes) > in.guest.host.mostValue {
		return errTooLong
	}
	k := router.LookupKey(key)
	switch {
	case k == router.KeyField:
		return in.setField(key, v)
	case k.ReadOnly():
		return errNotPermitted
	}
	m := in.edit()
	if v.Kind == router.String || v.Kind == router.Bytes {
		if own, before := in.ownText(k); own != nil {
			if k != router.KeyMessage && len(v.Bytes) > router.MaxHeader {
				return errTooLong
			}
			text, ok := in.store(*own, *before, v.Bytes)
			if !ok {
				return errTooMany
			}
			*own = text
			return 0
		}
	}
	c := errorCode(m.Set(k, v, in.batch))
	if m.Text == nil {
		m.Text = []byte{} // never absent
	}
	return c
}

// ownText is where the message keeps the text of a key, now and before the call; nil for numbers.
func (in *instance) ownText(k router.Key) (now, before *[]byte) {
	switch k {
	case router.KeyHostname:
		return &in.m.Hostname, &in.saved.Hostname
	case router.KeyAppName:
		return &in.m.AppName, &in.saved.AppName
	case router.KeyProcID:
		return &in.m.ProcID, &in.saved.ProcID
	case router.KeyMsgID:
		return &in.m.MsgID, &in.saved.MsgID
	case router.KeyMessage:
		return &in.m.Text, &in.saved.Text
	}
	return nil, nil
}

func (in *instance) setField(key []byte, v router.Value) int32 {
	m := in.edit()
	i := fieldIndex(m.Fields, key)
	if i < 0 {
		if !validKey(key) {
			return errInvalid
		}
		if len(m.Fields) >= router.MaxFields {
			return errTooMany
		}
		in.guest.nearly(key)
	}
	if !in.ownFields() {
		return errTooMany
	}
	if v.Bytes != nil {
		var old, before []byte
		if i >= 0 {
			old = m.Fields[i].Value.Bytes
			if f := in.saved.Field(key); f != nil {
				before = f.Value.Bytes
			}
		}
		var ok bool
		if v.Bytes, ok = in.store(old, before, v.Bytes); !ok {
			return errTooMany
		}
	}
	if i >= 0 {
		m.Fields[i].Value = v
		return 0
	}
	name := in.batch.Copy(key)
	if name == nil {
		return errTooMany
	}
	m.Fields = append(m.Fields, router.Field{Name: name, Value: v})
	return 0
}

func fieldIndex(fields []router.Field, key []byte) int {
	for i := range fields {
		if bytes.Equal(fields[i].Name, key) {
			return i
		}
	}
	return -1
}

// ownFields makes the fields this call's own, with room for one more; false: the batch has none.
func (in *instance) ownFields() bool {
	m := in.m
	if in.own.fields && len(m.Fields) < cap(m.Fields) {
		return true
	}
	fields := in.batch.NewFields(len(m.Fields) + max(2, len(m.Fields)/2))
	if fields == nil {
		return false
	}
	m.Fields = append(fields, m.Fields...)
	in.own.fields = true
	return true
}

func fieldSet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, val := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	if c := in.mayEdit(key); c != 0 {
		stack[0] = code(c)
		return
	}
	in.clock.Charge(len(key) + min(len(val), in.guest.host.mostValue))
	v := router.Value{Kind: router.String, Bytes: val}
	if len(val) <= in.guest.host.mostValue && router.LookupKey(key) == router.KeyField && !utf8.Valid(val) {
		v.Kind = router.Bytes
	}
	stack[0] = code(in.set(key, v))
}

// mayEdit is 0 when a key may be set at all at the moment.
func (in *instance) mayEdit(key []byte) int32 {
	switch {
	case in.phase != processing:
		return errNotHere
	case len(key) > router.MaxKey:
		return errTooLong
	}
	return 0
}

func fieldSetI64(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key := in.bytes(mod, stack[0], stack[1])
	c := in.mayEdit(key)
	if c == 0 {
		in.clock.Charge(len(key))
		c = in.set(key, router.IntValue(int64(stack[2])))
	}
	stack[0] = code(c)
}

func fieldSetF64(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key, f := in.bytes(mod, stack[0], stack[1]), api.DecodeF64(stack[2])
	c := in.mayEdit(key)
	switch {
	case c != 0:
	case math.IsNaN(f) || math.IsInf(f, 0):
		c = errInvalid
	default:
		in.clock.Charge(len(key))
		c = in.set(key, router.FloatValue(f))
	}
	stack[0] = code(c)
}

func fieldUnset(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	key := in.bytes(mod, stack[0], stack[1])
	c := in.mayEdit(key)
	if c == 0 {
		in.clock.Charge(len(key))
		c = in.unset(key)
	}
	stack[0] = code(c)
}

func (in *instance) unset(key []byte) int32 {
	k := router.LookupKey(key)
	switch {
	case k.ReadOnly():
		return errNotPermitted
	case k != router.KeyField:
		if in.kind(key) == router.Absent {
			return errAbsent
		}
		return in.set(key, router.Value{Kind: router.Null})
	}
	i := fieldIndex(in.m.Fields, key)
	if i < 0 {
		return in.noField(key)
	}
	m := in.edit()
	if !in.ownFields() {
		return errTooMany
	}
	m.Fields = slices.Delete(m.Fields, i, i+1)
	return 0
}
