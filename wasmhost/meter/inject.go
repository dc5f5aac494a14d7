package meter

// settle adds to each point what the callees cost that it pays for, and the points that it pays for.
func (w *walker) settle() {
	for _, c := range w.calls {
		if int(c.callee) < len(w.bodies) {
			w.points[c.point].units += w.bodies[c.callee].inline
		}
	}
	for i := len(w.points) - 1; i >= 0; i-- {
		if p := &w.points[i]; p.payer >= 0 {
			w.points[p.payer].units += p.units
			p.units = 0
		}
	}
}

// appendCode writes the code section's content: all bodies with their points.
func (w *walker) appendCode(out []byte) []byte {
	out = appendU32(out, uint32(len(w.bodies)))
	var body []byte
	for i := range w.bodies {
		body = w.appendBody(body[:0], &w.bodies[i])
		out = appendBytes(out, body)
	}
	return out
}

func (w *walker) appendBody(out []byte, b *body) []byte {
	points := w.points[b.first:b.behind]
	if len(points) == 0 {
		out = append(appendU32(out, uint32(b.groups)), b.locals...)
		return append(out, w.buf[b.start:b.end]...)
	}
	out = append(appendU32(out, uint32(b.groups+1)), b.locals...)
	switch {
	case b.tries > 0:
		out = append(out, 4, i32)
	case b.lengths:
		out = append(out, 2, i32)
	default:
		out = append(out, 1, i32)
	}
	var edits []edit
	if b.frame != 0 {
		out = w.appendEnter(out, b)
		edits = w.edits[b.edits[0]:b.edits[1]]
	}
	from := b.start
	for _, p := range points {
		out = w.appendOps(out, from, p.at, b, &edits)
		from = p.at
		switch {
		case p.bulk != none:
			out = w.appendBulk(out, b, p.bulk)
		case p.units != 0:
			out = w.appendCharge(out, b.scratch, p)
		}
	}
	out = w.appendOps(out, from, b.end, b, &edits)
	if b.frame != 0 {
		out = append(w.appendLeave(out, b), opEnd)
	}
	return out
}

// appendCharge writes: counter -= units, and the check. The form is what the compiler makes the least of, measured over
// a dozen: the difference in a local, stored after the branch. At a loop's head the seldom path goes back to the head
// (and so gives back the units, which the head takes again): rejoining here would have the compiler move registers
// about in every pass.
func (w *walker) appendCharge(out []byte, local uint32, p point) []byte {
	counter := w.rw.counter()
	out = appendU32(append(out, opGlobalGet), counter)
	out = appendSigned(append(out, opI32Const), int64(p.units))
	out = append(out, opI32Sub)
	out = w.appendTick(out, local)
	if p.head {
		out = appendU32(append(out, opLocalGet), local)
		out = appendSigned(append(out, opI32Const), int64(p.units))
		out = append(out, opI32Add)
		out = appendU32(append(out, opGlobalSet), counter)
		out = append(out, opBr, 1)
	}
	return w.appendStore(append(out, opEnd), local)
}

// appendBulk writes: counter -= what the length on top of the stack is worth, and the check.
func (w *walker) appendBulk(out []byte, b *body, kind bulk) []byte {
	local, length := b.scratch, b.scratch+1
	out = appendU32(append(out, opLocalSet), length)
	out = appendU32(append(out, opGlobalGet), w.rw.counter())
	out = appendU32(append(out, opLocalGet), length)
	switch kind {
	case bytesMoved:
		out = append(out, opI32Const, 6, opI32ShrU)
	case elementsMoved:
		out = append(out, opI32Const, 3, opI32ShrU)
	case pagesGrown:
		out = appendSigned(append(out, opI32Const), 0xffff)
		out = append(out, opI32And, opI32Const, 12, opI32Shl)
	}
	out = append(w.appendTick(append(out, opI32Sub), local), opEnd)
	out = w.appendStore(out, local)
	return appendU32(append(out, opLocalGet), length)
}

// appendTick writes: local = top of stack; if local < 0 { local = tick(local), leaving the if open.
func (w *walker) appendTick(out []byte, local uint32) []byte {
	out = appendU32(append(out, opLocalTee), local)
	out = append(out, opI32Const, 0, opI32LtS, opIf, 0x40)
	out = appendU32(append(out, opLocalGet), local)
	out = appendU32(append(out, opCall), w.rw.imported)
	return appendU32(append(out, opLocalSet), local)
}

func (w *walker) appendStore(out []byte, local uint32) []byte {
	out = appendU32(append(out, opLocalGet), local)
	return appendU32(append(out, opGlobalSet), w.rw.counter())
}
