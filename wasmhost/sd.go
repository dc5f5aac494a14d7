package wasmhost

import (
	"context"
	"slices"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirlog/weir/router"
)

func sdGet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	id, param := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	buf := in.bytes(mod, stack[4], stack[5])
	if c := in.maySD(id, param); c != 0 {
		stack[0] = code(c)
		return
	}
	if e := element(in.m, id); e >= 0 {
		if p := parameter(in.m.Structured[e].Params, param); p >= 0 {
			value := in.m.Structured[e].Params[p].Value
			in.clock.Charge(len(id) + len(param) + min(len(value), len(buf)))
			stack[0] = answer(buf, value)
			return
		}
	}
	in.clock.Charge(len(id) + len(param))
	stack[0] = code(errAbsent)
}

func (in *instance) maySD(id, param []byte) int32 {
	switch {
	case in.phase != processing:
		return errNotHere
	case len(id) > router.MaxKey || len(param) > router.MaxKey:
		return errTooLong
	}
	return 0
}

func element(m *router.Message, id []byte) int {
	return slices.IndexFunc(m.Structured, func(e router.Element) bool { return string(e.ID) == string(id) })
}

func parameter(params []router.Param, name []byte) int {
	for i := range params {
		if string(params[i].Name) == string(name) {
			return i
		}
	}
	return -1
}

// sdSet gives the first parameter of that name a value, and takes the others of that name away: afterwards there is just
// what the filter has said.
func sdSet(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	id, param := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	val := in.bytes(mod, stack[4], stack[5])
	c := in.maySD(id, param)
	switch {
	case c != 0:
	case !sdName(id) || !sdName(param):
		c = errInvalid
	case len(val) > in.guest.host.mostValue:
		c = errTooLong
	default:
		in.clock.Charge(len(val))
		c = in.setParam(id, param, val)
	}
	stack[0] = code(c)
}

// sdName reports whether RFC 5424 section 6.3.3 allows the name.
func sdName(name []byte) bool {
	if len(name) == 0 || len(name) > 32 {
		return false
	}
	for _, c := range name {
		if c <= ' ' || c > '~' || c == '=' || c == ']' || c == '"' {
			return false
		}
	}
	return true
}

func (in *instance) setParam(id, name, val []byte) int32 {
	m := in.edit()
	e, total := -1, 0
	for i := range m.Structured {
		if e < 0 && string(m.Structured[i].ID) == string(id) {
			e = i
		}
		total += max(1, len(m.Structured[i].Params))
	}
	p := -1
	if e >= 0 {
		p = parameter(m.Structured[e].Params, name)
	}
	if p < 0 && total >= router.MaxParams {
		return errTooMany
	}
	value := in.batch.Copy(val)
	if value == nil || !in.ownElements() {
		return errTooMany
	}
	if e < 0 {
		copied := in.batch.Copy(id)
		if copied == nil {
			return errTooMany
		}
		e = len(m.Structured)
		m.Structured = append(m.Structured, router.Element{ID: copied})
	}
	if !in.ownParams(&m.Structured[e]) {
		return errTooMany
	}
	params := m.Structured[e].Params
	if p >= 0 {
		params[p].Value = value
		rest := slices.DeleteFunc(params[p+1:], func(other router.Param) bool { return string(other.Name) == string(name) })
		m.Structured[e].Params = params[:p+1+len(rest)]
		return 0
	}
	copied := in.batch.Copy(name)
	if copied == nil {
		return errTooMany
	}
	m.Structured[e].Params = append(params, router.Param{Name: copied, Value: value})
	return 0
}

// ownElements makes the elements this call's own, with room for one more; false: the batch has none.
func (in *instance) ownElements() bool {
	m := in.m
	if in.own.elements && len(m.Structured) < cap(m.Structured) {
		return true
	}
	elements := in.batch.NewElements(len(m.Structured) + max(2, len(m.Structured)/2))
	if elements == nil {
		return false
	}
	m.Structured = append(elements, m.Structured...)
	in.own.elements = true
	return true
}

// ownParams is the same for the parameters of one element.
func (in *instance) ownParams(e *router.Element) bool {
	if in.own.params != nil && unsafe.SliceData(e.Params) == in.own.params && len(e.Params) < cap(e.Params) {
		return true
	}
	params := in.batch.NewParams(len(e.Params) + max(4, len(e.Params)/2))
	if params == nil {
		return false
	}
	e.Params = append(params, e.Params...)
	in.own.params = unsafe.SliceData(e.Params)
	return true
}

func sdUnset(ctx context.Context, mod api.Module, stack []uint64) {
	in := ctx.(*instance)
	id, param := in.bytes(mod, stack[0], stack[1]), in.bytes(mod, stack[2], stack[3])
	c := in.maySD(id, param)
	if c == 0 {
		in.clock.Charge(len(id) + len(param))
		c = in.unsetParam(id, param)
	}
	stack[0] = code(c)
}

// unsetParam takes away all parameters of that name, or the whole element when name is empty.
func (in *instance) unsetParam(id, name []byte) int32 {
	e := element(in.m, id)
	if e < 0 || len(name) > 0 && parameter(in.m.Structured[e].Params, name) < 0 {
		return errAbsent
	}
	m := in.edit()
	if !in.ownElements() {
		return errTooMany
	}
	if len(name) == 0 {
		m.Structured = slices.Delete(m.Structured, e, e+1)
		return 0
	}
	if !in.ownParams(&m.Structured[e]) {
		return errTooMany
	}
	m.Structured[e].Params = slices.DeleteFunc(m.Structured[e].Params, func(p router.Param) bool { return string(p.Name) == string(name) })
	return 0
}
