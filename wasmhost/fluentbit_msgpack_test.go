package wasmhost

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost/meter"
)

func pack(s string) []byte { return new(packer).appendJSON(nil, []byte(s)) }

func unpack(b []byte) (string, error) {
	var clock meter.Clock
	clock.Begin(time.Hour)
	u := unpacker{clock: &clock, most: 1 << 20}
	out, err := u.appendMap(nil, b)
	return string(out), err
}

func TestMessagePackThereAndBack(t *testing.T) {
	check := func(text, packed string) {
		t.Helper()
		if got := hex.EncodeToString(pack(text)); got != packed {
			t.Errorf("%s: packed %s, not %s", text, got, packed)
		}
		b, _ := hex.DecodeString(packed)
		if got, err := unpack(append(b, 0xc1)); err != nil || got != text {
			t.Errorf("%s: unpacked %s, %v", text, got, err)
		}
	}
	check(`{}`, "80")
	check(`{"a":null,"b":true,"c":false}`, "83a161c0a162c3a163c2")
	check(`{"a":[],"b":[1,[2]],"c":{"d":{}}}`, "83a16190a162920191"+"02a16381a16480")
	check(`{"a":[0,127,128,255,256,65535,65536,4294967295,4294967296,9223372036854775807,18446744073709551615]}`,
		"81a1619b007fcc80ccffcd0100cdffffce00010000ceffffffffcf0000000100000000cf7fffffffffffffffcfffffffffffffffff")
	check(`{"a":[-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-9223372036854775808]}`,
		"81a1619affe0d0dfd080d1ff7fd18000d2ffff7fffd280000000d3ffffffff7fffffffd38000000000000000")
	check(`{"a":[1.0,-0.5,1e+100]}`, "81a16193cb3ff0000000000000cbbfe0000000000000cb54b249ad2594c37d")
	check(`{"é\n\"\\\u0001":"a, b] {\"c\":[1,2]}"}`, "81a6c3a90a225c01b1"+hex.EncodeToString([]byte(`a, b] {"c":[1,2]}`)))
	check(`{"a":"`+strings.Repeat("x", 31)+`"}`, "81a161bf"+strings.Repeat("78", 31))
	check(`{"a":"`+strings.Repeat("x", 32)+`"}`, "81a161d920"+strings.Repeat("78", 32))
	check(`{"a":"`+strings.Repeat("x", 256)+`"}`, "81a161da0100"+strings.Repeat("78", 256))
	check(`{"a":"`+strings.Repeat("x", 65536)+`"}`, "81a161db00010000"+strings.Repeat("78", 65536))
	check(`{"a":[`+strings.Repeat("1,", 15)+`1]}`, "81a161dc0010"+strings.Repeat("01", 16))
	check(`{"a":[`+strings.Repeat("1,", 65535)+`1]}`, "81a161dd00010000"+strings.Repeat("01", 65536))
	check(`{`+strings.Repeat(`"a":1,`, 15)+`"a":1}`, "de0010"+strings.Repeat("a16101", 16))
	check(strings.Repeat(`{"a":`, 512)+`1`+strings.Repeat(`}`, 512), strings.Repeat("81a161", 512)+"01")
}

func TestPackedText(t *testing.T) {
	check := func(text, packed string) {
		t.Helper()
		if got := hex.EncodeToString(pack(text)); got != packed {
			t.Errorf("%s: %s, not %s", text, got, packed)
		}
	}
	check(`["\b\f\n\r\t\/\u00e9\ud83d\ude00\ud83d"]`, "91af080c0a0d092fc3a9f09f9880efbfbd")
	check(`[1e999]`, "91a53165393939") // beyond all floats: as text
	check(`[123456789012345678901234567890]`, "91cb45f8ee90ff6c373e")
	check(`-0`, "00")
}

func TestUnpackedMessagePack(t *testing.T) {
	check := func(packed, want string) {
		t.Helper()
		b, _ := hex.DecodeString(packed)
		got, err := unpack(b)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", packed, got, want)
		}
	}
	check("de0001a16101", `{"a":1}`) // longer than it need be
	check("df00000001d90161cd0001", `{"a":1}`)
	check("81c40161c50002ff62", `{"a":"�b"}`)
	check("81a161ca3dcccccd", `{"a":0.1}`)
	check("81a161d6ff00000000", `{"a":"1970-01-01T00:00:00Z"}`)
	check("81a161d7ff0000000400000001", `{"a":"1970-01-01T00:00:01.000000001Z"}`)
	check("81a161c70cff00000001ffffffffffffffff", `{"a":"1969-12-31T23:59:59.000000001Z"}`)
	check("81a161c70cff000000017fffffffffffffff", "it holds a time that is outside of the years 1 to 9999")
	check("81a161c705ff0000000000", "it holds a time of 5 bytes")
	check("81a161d40501", "it holds an extension of type 5; only times (-1) have a form in records")
	check("81a161cb7ff0000000000000", "it holds a float that is not a number, which records cannot hold")
	check("8101a161", "a name in it is no text")
	check("81c0a161", "a name in it is no text")
	check("81a161c1", "there is no value that begins with the byte 0xc1")
	check("90", "it begins with the byte 0x90")
	check("81a161", "it ends in the middle of a value")
	check("81a161dbffffffff61", "it ends in the middle of a value")
	check("dfffffffffa16101", "it ends in the middle of a value")
	check("81a161"+strings.Repeat("91", 512)+"01", "it is more than 512 levels deep")
	check("81a161dd00100000"+strings.Repeat("c0", 1<<20), "it is too large")
}

// FuzzMessagePack unpacks what a guest may hand back. What can be unpacked is JSON, and is the same after it was packed
// and unpacked again; packing it is as long as it is short.
func FuzzMessagePack(f *testing.F) {
	for _, s := range []string{"80", "81a161c0", "82a16101a162930102cb3ff8000000000000", "81a161d7ff0000000500000001", "81a161ca3dcccccd", "df00000001c40161c50002ff62", "81a161cfffffffffffffffff"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Add(pack(string(router.AppendRecord(nil, &router.Message{Origin: &router.Origin{Source: "s"}}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return // a result of the guest has at least one byte
		}
		text, err := unpack(data)
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("no JSON: %s", text)
		}
		packed := pack(text)
		again, err := unpack(packed)
		if err != nil || again != text {
			t.Fatalf("%s became %s, %v", text, again, err)
		}
		if !bytes.Equal(pack(again), packed) {
			t.Fatalf("%s is packed in two ways", text)
		}
	})
}

func TestPackingAllocatesNothing(t *testing.T) {
	m := router.Message{Origin: &router.Origin{Source: "s"}}
	m.Text, m.Timestamp = []byte("a \"message\""), math.MaxInt32
	record := router.AppendRecord(nil, &m)
	var p packer
	buf := p.appendJSON(nil, record)
	if n := testing.AllocsPerRun(100, func() { buf = p.appendJSON(buf[:0], record) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
