//go:build wasip1

package weir

// An Error is what the host answers instead of doing what it was asked.
type Error int32

const (
	errAbsent       Error = -1
	errType         Error = -2
	errTooLong      Error = -3
	errNotPermitted Error = -4
	errInvalid      Error = -5
	errTooMany      Error = -6
	errNotHere      Error = -7
)

// For errors.Is, or plain ==.
var (
	ErrAbsent       error = errAbsent       // there is no such field, parameter, element, key or destination
	ErrType         error = errType         // the value is of another type
	ErrTooLong      error = errTooLong      // the key, value or text is over its limit
	ErrNotPermitted error = errNotPermitted // the key is read-only
	ErrInvalid      error = errInvalid      // the key or the value is none
	ErrTooMany      error = errTooMany      // a quota is used up (fields, parameters, emitted messages, keys), or no memory is free
	ErrNotHere      error = errNotHere      // not available in this function, such as a message in OnStart
)

func (e Error) Error() string {
	switch e {
	case errAbsent:
		return "absent"
	case errType:
		return "wrong type"
	case errTooLong:
		return "too long"
	case errNotPermitted:
		return "not permitted"
	case errInvalid:
		return "invalid"
	case errTooMany:
		return "too many"
	case errNotHere:
		return "not available here"
	}
	return "unknown error"
}

// errorOf returns the variable, so that no error is allocated.
func errorOf(n int32) error {
	switch Error(n) {
	case errAbsent:
		return ErrAbsent
	case errType:
		return ErrType
	case errTooLong:
		return ErrTooLong
	case errNotPermitted:
		return ErrNotPermitted
	case errInvalid:
		return ErrInvalid
	case errTooMany:
		return ErrTooMany
	case errNotHere:
		return ErrNotHere
	}
	if n < 0 {
		return Error(n)
	}
	return nil
}
