package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// model is what a spool is to hold, told in messages.
type model struct {
	t     *testing.T
	r     *rand.Rand
	disk  *memDisk
	spool *Spool
	log   []string

	all  map[id]*fact
	row  []id // in order: what was appended and may still be there
	at   int  // of row: the reader
	next uint64
	sent map[string]uint64 // serials handed out, by sender

	breaks bool // the disk fails now and then
}

type id struct {
	run    router.RunID
	number uint64
}

// fact is what is known of a message.
type fact struct {
	text   string
	sender string
	serial uint64
	synced bool
	acked  bool
	gone   bool   // dropped or expired
	broken bool   // its bytes were damaged
	firm   bool   // Sync said so, or Append
	undone bool   // it was dropped, but the directory could not be synced
	marked *fact  // the message that carries the mark,
	until  uint64 // and its number
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nlast steps:\n%s", fmt.Sprintf(format, args...), bytes.Join(func() (l [][]byte) {
		for _, s := range m.log[max(0, len(m.log)-60):] {
			l = append(l, []byte(s))
		}
		return l
	}(), []byte("\n")))
}

func (m *model) step(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) open() {
	s, err := open(m.disk, Config{Size: 200 << 10, segment: 16 << 10, KeepFree: 8 << 10, Age: time.Hour}, silent)
	if err != nil {
		m.fatalf("open: %v", err)
	}
	m.spool, m.next = s, 1
}

// append adds some messages, sometimes from a sender that numbers.
func (m *model) append() {
	var mark router.Mark
	if m.r.IntN(2) == 0 {
		mark.Sender = "sender" + strconv.Itoa(m.r.IntN(3))
	}
	var msgs []*router.Message
	var facts []*fact
	for i := range 1 + m.r.IntN(8) {
		f := &fact{text: fmt.Sprintf("<%v/%d/%0*d>", m.spool.run, m.next+uint64(i), m.r.IntN(1500), m.r.Uint32()), sender: mark.Sender}
		if mark.Sender != "" {
			m.sent[mark.Sender]++
			f.serial = m.sent[mark.Sender]
			mark.Last = f.serial
		}
		msg := &router.Message{Origin: origin, Received: time.Now().UnixNano()}
		msg.Text = []byte(f.text)
		msgs, facts = append(msgs, msg), append(facts, f)
	}
	first, err := m.spool.Append(msgs, mark)
	m.step("append %d: %d %v", len(msgs), first, err)
	m.noticeSynced()
	if err != nil {
		if !m.breaks && !errors.Is(err, router.ErrSpoolFull) && !errors.Is(err, syscall.ENOSPC) {
			m.fatalf("append: %v", err)
		}
		if mark.Sender != "" {
			m.sent[mark.Sender] -= uint64(len(msgs))
		}
		return
	}
	if first != m.next {
		m.fatalf("numbered from %d, want %d", first, m.next)
	}
	for i, f := range facts {
		f.marked, f.until = facts[len(facts)-1], first+uint64(len(facts))-1
		k := id{m.spool.run, first + uint64(i)}
		m.all[k] = f
		m.row = append(m.row, k)
	}
	m.next += uint64(len(msgs))
	if mark.Sender != "" && m.spool.Last(mark.Sender) != mark.Last {
		m.fatalf("last of %s is %d, want %d", mark.Sender, m.spool.Last(mark.Sender), mark.Last)
	}
}

// noticeSynced knows what Append has synced by itself.
func (m *model) noticeSynced() {
	for i := len(m.row) - 1; i >= 0 && m.row[i].run == m.spool.run; i-- {
		if m.row[i].number <= m.spool.synced {
			m.all[m.row[i]].synced, m.all[m.row[i]].firm = true, true
		}
	}
}

func (m *model) sync() {
	err := m.spool.Sync()
	m.step("sync: %v", err)
	if err != nil && !m.breaks && !errors.Is(err, syscall.ENOSPC) {
		m.fatalf("sync: %v", err)
	}
	m.noticeSynced()
	if err == nil && len(m.row) > 0 && !m.all[m.row[len(m.row)-1]].synced {
		m.fatalf("not all is synced")
	}
}

func (m *model) read() {
	b := router.NewBatch(1<<20, 1+m.r.IntN(20))
	defer b.Discard()
	run, first, lost, err := m.spool.Read(b, 1+m.r.IntN(10000))
	m.step("read: %v %d, %d messages, %d lost, %v", run, first, b.Len(), lost, err)
	if err != nil && err != io.EOF {
		if !m.breaks {
			m.fatalf("read: %v", err)
		}
		return
	}
	skip := func(k id) { // the reader passed by it
		f := m.all[k]
		switch {
		case f.gone:
		case f.broken:
			lost--
		default:
			m.fatalf("message %v was not read", k)
		}
	}
	for i, msg := range b.Messages() {
		k := id{run, first + uint64(i)}
		for ; m.at < len(m.row) && m.row[m.at] != k; m.at++ {
			skip(m.row[m.at])
		}
		f := m.all[k]
		if m.at == len(m.row) || f.gone || !f.synced || f.text != string(msg.Text) {
			m.fatalf("message %v: read although it is not there (%d of %d)", k, m.at, len(m.row))
		}
		m.at++
	}
	if err == io.EOF {
		for ; m.at < len(m.row) && m.all[m.row[m.at]].synced; m.at++ {
			skip(m.row[m.at])
		}
	}
	if lost != 0 {
		m.fatalf("lost is wrong by %d", lost)
	}
}

func (m *model) ack() {
	if m.at == 0 {
		return
	}
	i := m.r.IntN(m.at)
	k := m.row[i]
	if m.all[k].gone {
		return // it was never read
	}
	m.step("ack %v", k)
	m.spool.Ack(k.run, k.number)
	for _, k := range m.row[:i+1] {
		m.all[k].acked = true
	}
}

func (m *model) rewind() {
	all := m.r.IntN(2) == 0
	more := m.spool.Rewind(all)
	m.step("rewind %v: %d", all, more)
	kept := m.kept()
	before := m.at
	if all {
		m.at = 0
	} else {
		m.at = m.firstOpen()
	}
	want := 0
	for i, k := range m.row {
		if !kept[k] && !m.all[k].gone && !m.all[k].acked && !m.all[k].broken {
			m.fatalf("%v is not there any more", k)
		}
		if kept[k] && !m.all[k].gone && i >= m.at && i < before {
			want++
		}
	}
	for all && m.at < len(m.row) && !kept[m.row[m.at]] {
		m.at++ // spent and removed
	}
	if all {
		for _, k := range m.row[m.at:] {
			m.all[k].acked = false
		}
	}
	if more != want {
		for _, g := range m.spool.segments {
			m.step("%s %v %d-%d acked %d", g.name(), g.run, g.first, g.last, g.acked)
		}
		m.fatalf("%d messages more, want %d", more, want)
	}
}

// kept are the numbers that are in the segments.
func (m *model) kept() map[id]bool {
	kept := map[id]bool{}
	synctest.Wait()
	for _, g := range m.spool.segments {
		for n := g.first; n <= g.last; n++ {
			kept[id{g.run, n}] = true
		}
	}
	for n := m.spool.synced + 1; n < m.spool.next; n++ { // after a failed sync they are in memory only
		kept[id{m.spool.run, n}] = true
	}
	return kept
}

// firstOpen is the first that is not done with. Where the reader found messages missing at the end of a segment, they are when those
// before them are.
func (m *model) firstOpen() int {
	passed := func(k id) bool {
		return !slices.ContainsFunc(m.spool.segments, func(g *segment) bool { return g.run == k.run && k.number > g.acked && k.number <= g.last })
	}
	synctest.Wait()
	i := 0
	for i < len(m.row) && (m.all[m.row[i]].acked || m.all[m.row[i]].gone || m.all[m.row[i]].broken && passed(m.row[i])) {
		i++
	}
	return i
}

func (m *model) seek() {
	if len(m.row) == 0 {
		return
	}
	i := m.r.IntN(len(m.row))
	k := m.row[i]
	if m.all[k].gone || !m.all[k].synced {
		return
	}
	want := 0
	for _, k := range m.row[min(m.at, i+1) : i+1] {
		if !m.all[k].gone {
			want++
		}
	}
	n := m.spool.Seek(k.run, k.number)
	m.step("seek %v: %d", k, n)
	if m.all[k].acked && i+1 > m.at || n != want && !m.all[k].acked { // acknowledged ones may have left
		m.fatalf("seek passed by %d, want %d", n, want)
	}
	m.at = max(m.at, i+1)
}

// drop checks DropOldest, or Expire.
func (m *model) drop(what string, call func() (int, error)) {
	before := slices.Clone(m.spool.segments)
	acked := map[*segment]uint64{}
	for _, g := range before {
		acked[g] = g.acked
	}
	n, err := call()
	synctest.Wait()
	m.step("%s: %d %v", what, n, err)
	for _, g := range before {
		if !slices.Contains(m.spool.segments, g) {
			m.step("    %s %v %d-%d", g.name(), g.run, g.first, g.last)
		}
	}
	if err != nil && !m.breaks {
		m.fatalf("%s: %v", what, err)
	}
	count := 0
	for _, g := range before {
		there := slices.Contains(m.spool.segments, g)
		if there && g.acked == acked[g] {
			continue
		}
		for i, k := range m.row {
			f := m.all[k]
			if k.run == g.run && k.number >= g.first && k.number <= acked[g] && !there {
				f.gone, f.undone = true, err != nil // it was done with
			}
			if k.run == g.run && k.number > acked[g] && k.number <= g.last {
				if i < m.at && !f.broken || f.acked {
					m.fatalf("%s took %v, which was read", what, k)
				}
				f.gone, f.undone = true, err != nil
				count++
			}
		}
	}
	if count != n {
		m.fatalf("%s says %d, took %d", what, n, count)
	}
}

// sleep lets the spool do what it does by itself.
func (m *model) sleep(d time.Duration) {
	m.disk.fails(nil)
	m.spool.Backlog() // its lock tells the race detector who comes first
	time.Sleep(d)
	synctest.Wait()
}

// damage changes a byte of a message that is on the disk.
func (m *model) damage() {
	if len(m.row) == 0 {
		return
	}
	k := m.row[m.r.IntN(len(m.row))]
	f := m.all[k]
	if f.acked || f.gone || f.broken || !f.synced || slices.Index(m.row, k) < m.at {
		return
	}
	if s := m.spool.scan; s != nil { // what is in memory already stays right
		s.buf = s.buf[:0]
	}
	hit := 0
	for _, file := range m.disk.names {
		if i := bytes.Index(file.data, []byte(f.text)); i >= 0 {
			at := i + m.r.IntN(len(f.text))
			file.data[at] ^= 0x20
			if at < len(file.synced) {
				file.synced[at] ^= 0x20
			}
			hit++
		}
	}
	m.step("damage %v: %d", k, hit)
	f.broken = true
}

// again ends the process in some way and opens the spool anew.
func (m *model) again() {
	how := []string{"close", "kill", "power cut"}[m.r.IntN(3)]
	if m.breaks && how == "close" {
		how = "kill"
	}
	m.step("%s", how)
	switch how {
	case "close":
		if err := m.spool.Close(); err == nil {
			m.noticeSynced()
		} else if !errors.Is(err, syscall.ENOSPC) {
			m.fatalf("close: %v", err)
		}
	case "kill", "power cut":
		close(m.spool.done)
		m.spool.keeping.Wait()
		if how == "power cut" {
			m.disk.powerCut(m.r)
		} else if n := m.r.IntN(200); n > 0 { // in the middle of a write
			m.tear(n)
		}
	}
	m.disk.fails(nil)
	m.open()
	if how != "close" {
		m.spool.Rewind(m.r.IntN(2) == 0)
	}
	m.compare(how)
}

// tear leaves a part of a record behind the newest segment.
func (m *model) tear(n int) {
	if g := m.spool.active; g != nil {
		m.disk.names[g.name()].data = append(m.disk.names[g.name()].data[:g.size], make([]byte, n)...)
	}
}

// compare reads all that is there, and goes on with that.
func (m *model) compare(how string) {
	m.spool.Rewind(true)
	got := map[id]bool{}
	var row []id
	lost := 0
	synctest.Wait()
	for _, g := range m.spool.segments {
		m.step("%s %v %d-%d acked %d", g.name(), g.run, g.first, g.last, g.acked)
	}
	for {
		b := router.NewBatch(1<<20, 100)
		run, first, n, err := m.spool.Read(b, 1<<20)
		lost += n
		for i, msg := range b.Messages() {
			k := id{run, first + uint64(i)}
			f := m.all[k]
			if f == nil || f.text != string(msg.Text) {
				m.fatalf("%v was never written like that", k)
			}
			if f.gone && !f.undone {
				m.fatalf("%v was dropped, and is there", k)
			}
			f.gone = false
			if got[k] || len(row) > 0 && slices.Index(m.row, k) <= slices.Index(m.row, row[len(row)-1]) {
				m.fatalf("%v is there twice or out of order", k)
			}
			got[k] = true
			row = append(row, k)
		}
		b.Discard()
		if err == io.EOF {
			break
		}
		if err != nil {
			m.fatalf("%v", err)
		}
	}
	last := map[string]uint64{}
	doubt := map[router.RunID]uint64{} // from here on, marks may not count
	for _, k := range m.row {
		if m.all[k].broken && doubt[k.run] == 0 {
			doubt[k.run] = k.number
		}
	}
	for _, k := range m.row {
		f := m.all[k]
		if !got[k] && f.synced && !f.acked && !f.gone && !f.broken {
			m.fatalf("%v was synced and is not there", k)
		}
		if f.sender != "" && f.firm && !f.marked.broken && (doubt[k.run] == 0 || f.until < doubt[k.run]) {
			last[f.sender] = max(last[f.sender], f.serial)
		}
		if f.serial > 0 && f.serial <= m.spool.Last(f.sender) && !got[k] && !f.acked && !f.gone && !f.broken {
			m.fatalf("%v is not there, and its sender will not send it again", k)
		}
	}
	for sender, n := range last {
		if m.spool.Last(sender) < n {
			m.fatalf("last of %s is %d, %d was synced", sender, m.spool.Last(sender), n)
		}
	}
	for sender := range m.sent {
		m.sent[sender] = m.spool.Last(sender)
	}
	kept := m.kept()
	for _, k := range m.row {
		if m.all[k].undone && kept[k] {
			m.all[k].gone = false
		}
		if f := m.all[k]; how == "power cut" && !got[k] && !f.synced && kept[k] {
			f.broken = true // it was not written, but one behind it was
		}
	}
	m.row = slices.DeleteFunc(m.row, func(k id) bool { return !got[k] && !(m.all[k].broken && kept[k]) })
	for _, k := range m.row {
		m.all[k].synced, m.all[k].acked = true, false
		if !got[k] {
			lost--
		}
	}
	if lost != 0 {
		m.fatalf("lost is wrong by %d", lost)
	}
	m.spool.Rewind(true)
	m.at = 0
	m.step("opened again, %d messages", len(row))
}

// TestModel drives a spool and its model with random operations, kills and power cuts. Field cases C55, C58, C61.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SPOOL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	rounds := 60
	if n, err := strconv.Atoi(os.Getenv("SPOOL_ROUNDS")); err == nil {
		rounds = n
	}
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		ok := t.Run(fmt.Sprintf("seed=%d", seed+uint64(round)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { drive(t, seed+uint64(round)) })
		})
		if !ok {
			return
		}
	}
}

func drive(t *testing.T, seed uint64) {
	t.Helper()
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 1)), disk: newMemDisk(), all: map[id]*fact{}, sent: map[string]uint64{}}
	m.breaks = seed%3 == 0
	m.disk.size = []int64{0, 120 << 10}[seed%2]
	m.open()
	defer func() {
		select {
		case <-m.spool.done:
		default:
			close(m.spool.done)
		}
	}()
	for range 400 {
		synctest.Wait() // so that the same seed does the same
		if m.breaks {
			m.disk.fails(func(op string) error {
				if op != "remove" && op != "truncate" && op != "replace" && op != "read" && m.r.IntN(20) == 0 {
					return syscall.EIO
				}
				return nil
			})
		}
		switch m.r.IntN(24) {
		case 0, 1, 2, 3, 4, 5:
			m.append()
		case 6, 7, 8, 9:
			m.sync()
		case 10, 11, 12, 13:
			m.read()
		case 14, 15:
			m.ack()
		case 16:
			m.rewind()
		case 17:
			m.seek()
		case 18:
			m.drop("drop", m.spool.DropOldest)
		case 19:
			m.drop("expire", func() (int, error) { return m.spool.Expire(), nil })
		case 20:
			m.damage()
		case 21:
			m.sleep(time.Duration(m.r.IntN(40)) * time.Minute / 10)
		case 22:
			m.sleep(time.Duration(m.r.IntN(1000)) * time.Millisecond)
		case 23:
			if m.r.IntN(3) == 0 {
				m.again()
			}
		}
	}
	m.disk.fails(nil)
	m.sync()
	m.again()
	m.spool.Close()
}
