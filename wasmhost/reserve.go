package wasmhost

// plainMemory is a guest's memory where nothing can be reserved for it: it moves when it grows.
type plainMemory struct{ b []byte }

func (m *plainMemory) Reallocate(size uint64) []byte {
	if uint64(cap(m.b)) < size {
		m.b = append(make([]byte, 0, size), m.b...)
	}
	m.b = m.b[:size]
	return m.b
}

func (m *plainMemory) Free() { m.b = nil }
