package config

// A Secret is text that must not be seen. It prints as "***" everywhere;
// Reveal gives it away.
type Secret struct {
	text   string // as the file has it
	expand func(text string) (string, error)
}

// PlainSecret wraps text that did not come from a file.
func PlainSecret(text string) Secret { return Secret{text: text} }

// Reveal returns the secret. A ${file:…} in it is read anew at each call, so
// that a rotated password is picked up at the next connect.
func (s Secret) Reveal() (string, error) {
	if s.expand == nil {
		return s.text, nil
	}
	return s.expand(s.text)
}

// Empty reports whether nothing was given.
func (s Secret) Empty() bool { return s.text == "" }

func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return hidden
}

// GoString keeps %#v from showing the text.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps encoders, slog's among them, from showing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

const hidden = "***"
