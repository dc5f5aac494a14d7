package wasmhost

import "bytes"

// takeOutput does with the message in hand what a plug-in's output says, and returns the verdict.
func (in *instance) takeOutput(output []byte) int32 {
	output = trimJSON(output)
	switch {
	case len(output) == 0:
		return keep
	case string(output) == "null":
		return drop
	case output[0] == '{':
		return in.whenRead(in.become(output))
	case output[0] == '[':
		return in.takeArray(output[1:])
	}
	return in.failing("the output is no JSON object, array or null: %.100q", output)
}

// takeArray makes the first object the message and creates one for each other.
func (in *instance) takeArray(rest []byte) int32 {
	for n := 0; ; n++ {
		if rest = trimJSON(rest); n == 0 && len(rest) > 0 && rest[0] == ']' && len(rest) == 1 {
			return drop
		}
		in.clock.Charge(0)
		length := objectLength(rest)
		if length == 0 {
			return in.failing("item %d of the output array is no JSON object: %.100q", n+1, rest)
		}
		in.chargeLong(length)
		take := in.become
		if n > 0 {
			take = in.create
		}
		if v := in.whenRead(take(rest[:length])); v != keep {
			return v
		}
		if rest = trimJSON(rest[length:]); len(rest) == 0 {
			return in.failing("the output array has no end")
		}
		switch rest[0] {
		case ',':
			rest = rest[1:]
			continue
		case ']':
			if len(rest) == 1 {
				return keep
			}
		}
		return in.failing("the output array goes on with %.100q after item %d", rest, n+1)
	}
}

// objectLength is how long the JSON object is with which text begins; 0: it does not begin with one. What is in it is
// not looked at.
func objectLength(text []byte) int {
	if len(text) == 0 || text[0] != '{' {
		return 0
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}

func trimJSON(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }
