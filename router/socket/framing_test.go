package socket

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cutResult is what a stream was cut into.
type cutResult struct {
	Frames []string
	Cut    []int // indexes of frames that were longer than the limit
	Lost   bool  // a frame was unfinished at the end
	Bad    bool
}

// cutAll feeds data in pieces of the given sizes, the rest in one, and closes.
func cutAll(f *Framer, data []byte, sizes ...int) (r cutResult) {
	add := func(frame []byte, cut bool) {
		if cut {
			r.Cut = append(r.Cut, len(r.Frames))
		}
		r.Frames = append(r.Frames, string(frame))
	}
	for len(data) > 0 && !f.Bad() {
		n := len(data)
		if len(sizes) > 0 {
			n, sizes = min(n, sizes[0]), sizes[1:]
		}
		piece := slices.Clone(data[:n]) // overwritten below: nothing may point into it
		data = data[n:]
		for rest := piece; ; {
			frame, cut, n := f.Next(rest)
			if frame == nil {
				break
			}
			add(frame, cut)
			rest = rest[n:]
		}
		for i := range piece {
			piece[i] = '#'
		}
	}
	frame, lost := f.End(true)
	if frame != nil {
		add(frame, false)
	}
	r.Lost, r.Bad = lost, f.Bad()
	return r
}

const hardLimit = 1 << 20

func TestStreamsAreCutAsTheCasesSay(t *testing.T) {
	file, err := os.Open("testdata/framing.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			ID, Note  string
			Input     []byte `json:"input_b64"`
			Chunks    []int
			Max       int `json:"max_message_bytes"`
			Expect    [][]byte
			Truncated []int
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			want := cutResult{Cut: c.Truncated}
			for _, e := range c.Expect {
				want.Frames = append(want.Frames, string(e))
			}
			check := func(how string, sizes ...int) {
				t.Helper()
				got := cutAll(&Framer{Max: c.Max, Hard: hardLimit}, c.Input, sizes...)
				got.Lost = false
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, %s:\n%s", c.Note, how, d)
				}
			}
			check("as written", c.Chunks...)
			check("whole")
			check("byte by byte", slices.Repeat([]int{1}, len(c.Input))...)
		})
	}
}

func TestFramingOctetNeedsNoPRIAndStopsAtAnythingElse(t *testing.T) {
	check := func(in string, want cutResult) {
		t.Helper()
		for _, sizes := range [][]int{nil, slices.Repeat([]int{1}, len(in))} {
			got := cutAll(&Framer{Framing: FramingOctet, Max: 100, Hard: 1000}, []byte(in), sizes...)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%q in %d pieces: %s", in, len(sizes), d)
			}
		}
	}
	check("3 abc", cutResult{Frames: []string{"abc"}})
	check("3 a\nb\n2 xy\r\n", cutResult{Frames: []string{"a\nb", "xy"}})
	check("0 2 xy", cutResult{Frames: []string{"xy"}})
	check("3 abc<13>x\n", cutResult{Frames: []string{"abc"}, Bad: true})
	check("1001 abc", cutResult{Bad: true})
	check("12345678901 abc", cutResult{Bad: true})
	check("3 ab", cutResult{Lost: true})
	check("3 abc2", cutResult{Frames: []string{"abc"}, Lost: true})
}

func TestFramingLFCountsNothing(t *testing.T) {
	got := cutAll(&Framer{Framing: FramingLF, Max: 100, Hard: 1000}, []byte("5 <13>x\n7 y\x0012 "), 3)
	if d := cmp.Diff(cutResult{Frames: []string{"5 <13>x", "7 y", "12 "}}, got); d != "" {
		t.Error(d)
	}
}

func TestUnfinishedFramesAreLostWhenWeClose(t *testing.T) {
	check := func(in string, want bool) {
		t.Helper()
		f := Framer{Max: 16, Hard: 1000}
		for data := []byte(in); ; {
			frame, _, n := f.Next(data)
			if frame == nil {
				break
			}
			data = data[n:]
		}
		if frame, lost := f.End(false); lost != want || frame != nil {
			t.Errorf("%q: frame %q, lost %v", in, frame, lost)
		}
	}
	check("a line", true)
	check("a line\n", false)
	check("45", true)
	check("4 <1>a5", true)
	check("longer than the limit", false) // what counts of it is delivered already
	check("40 <13>x", true)
}

// TestTailIsNeverLargerThanTheLimit: not from a number that a stranger sent, nor
// from a line that does not end.
func TestTailIsNeverLargerThanTheLimit(t *testing.T) {
	check := func(in string) {
		t.Helper()
		held := 0
		f := Framer{Max: 4096, Hard: hardLimit, Grow: func(old, new int) bool { held += new - old; return true }}
		f.Next([]byte(in))
		if held > tailMin {
			t.Errorf("%q holds %d bytes", in, held)
		}
		for range 100 {
			f.Next(bytes.Repeat([]byte("x"), 1000))
			if held > 4096 {
				t.Fatalf("%q holds %d bytes", in, held)
			}
		}
		if f.Release(); held != 0 {
			t.Errorf("%q: %d bytes not given back", in, held)
		}
	}
	check("1000000 <13>x")
	check("<13>x")
}

func TestStreamIsGivenUpWhenTheTailMayNotGrow(t *testing.T) {
	f := Framer{Max: 4096, Hard: hardLimit, Grow: func(old, new int) bool { return new <= 1024 }}
	frame, _, n := f.Next(append([]byte("one\n"), bytes.Repeat([]byte("x"), 2000)...))
	if string(frame) != "one" {
		t.Fatalf("frame %q", frame)
	}
	if frame, _, _ := f.Next(bytes.Repeat([]byte("x"), 2000-n)); frame != nil || !f.Bad() {
		t.Errorf("frame %q, bad %v", frame, f.Bad())
	}
}

// cutReference is the framing of FramingAuto said another way: on the whole
// stream at once, without any state.
func cutReference(data []byte, limit, hard int) (r cutResult) {
	counted := false
	for {
		for len(data) > 0 && isLineEnd(data[0]) {
			data = data[1:]
		}
		if len(data) == 0 {
			return r
		}
		digits, wide := 0, int64(0)
		for digits < len(data) && digits < 11 && isDigit(data[digits]) {
			wide = wide*10 + int64(data[digits]-'0')
			digits++
		}
		is := digits > 0 && digits < 11 && wide <= int64(hard)
		count := int(min(wide, int64(hard)))
		if is && counted && digits == len(data) {
			r.Lost = true // a lone count
			return r
		}
		is = is && digits < len(data) && data[digits] == ' '
		if !counted {
			is = is && len(data) > digits+2 && data[digits+1] == '<' && isDigit(data[digits+2])
		}
		if is {
			data = data[digits+1:]
			if count == 0 {
				continue
			}
			if count > len(data) {
				r.Lost = true
				return r
			}
			if count > limit {
				r.Cut = append(r.Cut, len(r.Frames))
			}
			r.Frames = append(r.Frames, string(data[:min(count, limit)]))
			data, counted = data[count:], true
			continue
		}
		counted = false
		end := bytes.IndexAny(data, "\n\x00")
		line, rest := data, []byte(nil)
		if end >= 0 {
			line, rest = data[:end], data[end+1:]
		}
		line = bytes.TrimRight(line, "\r")
		if len(line) > limit {
			r.Cut = append(r.Cut, len(r.Frames))
			line = line[:limit]
		}
		r.Frames = append(r.Frames, string(line))
		data = rest
	}
}

// checkChunks compares whole, byte by byte, in random pieces, and the reference.
func checkChunks(t *testing.T, data []byte, limit, hard int, random *rand.Rand) {
	t.Helper()
	want := cutReference(data, limit, hard)
	sizes := []int{}
	for range 50 {
		sizes = append(sizes, 1+random.IntN(1+random.IntN(40)))
	}
	for _, s := range [][]int{nil, slices.Repeat([]int{1}, len(data)), sizes} {
		held := 0
		f := Framer{Max: limit, Hard: hard, Grow: func(old, new int) bool { held += new - old; return true }}
		got := cutAll(&f, data, s...)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q, limit %d, pieces %v:\n%s", data, limit, s, d)
		}
		if f.Release(); held != 0 {
			t.Fatalf("%d bytes of the tail not given back", held)
		}
	}
}

func TestFramesDoNotDependOnChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"5 <13>", "12 ", "0 ", "3 abc", "<1>", "\n", "\r\n", "\r", "\x00", "x", "long text that goes over the limit", "40 <2>", "7", "\r\r", "another one", " ", "<", "99999999999 "}
	for range 4_000 {
		var data []byte
		for range 1 + random.IntN(12) {
			data = append(data, parts[random.IntN(len(parts))]...)
		}
		checkChunks(t, data, 16+random.IntN(20), 50, random)
	}
}

func FuzzFraming(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte, limit uint16, seed uint64) {
		checkChunks(t, data, int(limit)+16, 1000, rand.New(rand.NewPCG(seed, 0)))
	})
}

func BenchmarkFraming(b *testing.B) {
	line := append(bytes.Repeat([]byte("m"), 255), '\n')
	counted := append([]byte("255 <"), bytes.Repeat([]byte("1"), 254)...)
	for name, message := range map[string][]byte{"lf": line, "octet": counted} {
		b.Run("frames="+name, func(b *testing.B) {
			data := bytes.Repeat(message, 250)
			f := Framer{Max: 64 << 10, Hard: hardLimit}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := data; ; {
					frame, _, n := f.Next(rest)
					if frame == nil {
						break
					}
					rest = rest[n:]
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/250, "ns/msg")
		})
	}
}
